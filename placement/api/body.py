"""A JSON body as a Submission; every value of a wrong kind is a sentence beside its field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from django.http import HttpRequest

from calibration.domain.errors import BadAmount
from calibration.domain.resources import parse_bytes
from placement.api import terms
from placement.domain.errors import Refused
from placement.domain.submission import Submission, bad_characters
from placement.forms.submit import first_line

TEXTS = ("name", "note", "command", "workload", "setup", "cwd", "node", "device", "gpu", "exclusive")
AMOUNTS = ("declared_ram", "declared_vram")
OTHERS = ("argv", "params", "environment", "workers", "priority", "time_limit_s")
FIELDS = frozenset((*TEXTS, *AMOUNTS, *OTHERS, *terms.FIELDS, "form_key"))


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON")


def load(request: HttpRequest) -> dict[str, Any]:
    """Return the body as an object. Raises Refused with the position of what cannot be read."""
    try:
        body = json.loads(request.body or b"{}", parse_constant=_no_number)
    except (ValueError, RecursionError) as problem:
        text = f"The body is not JSON: {str(problem)[:200] or 'nested too deep'}."
        raise Refused(text, {"body": text}) from problem
    if not isinstance(body, dict):
        text = "The body must be a JSON object."
        raise Refused(text, {"body": text})
    return body


def submission(body: Mapping[str, Any]) -> Submission:
    """Return the submission in a body. Amounts are bytes as whole numbers, or texts with a unit.

    Types are checked here, values by the service.
    """
    wrong: dict[str, str] = {
        str(name)[:60]: f"There is no such field; known are {', '.join(sorted(FIELDS))}."
        for name in body
        if name not in FIELDS
    }
    values: dict[str, Any] = {name: body[name] for name in OTHERS if body.get(name) is not None}
    for name in TEXTS:
        value = body.get(name)
        if value is not None and not isinstance(value, str):
            wrong[name] = f"It must be text, not {_kind(value)}."
        elif value is not None:
            values[name] = value
    for name in AMOUNTS:
        try:
            amount = _amount(body.get(name))
        except ValueError as problem:
            wrong[name] = str(problem)
        else:
            values[name] = amount
    _lists(body, values, wrong)
    terms.read(body, values, wrong)
    if wrong:
        raise Refused("The request cannot be taken: " + " ".join(f"{n}: {t}" for n, t in wrong.items()), wrong)
    if not values.get("name"):
        words = values.get("argv")
        values["name"] = (
            values.get("workload") or first_line(values.get("command", "")) or (words[0][:60] if words else "")
        )
    return Submission(**values)


def form_key(body: Mapping[str, Any]) -> str | None:
    """Return the one-time key with which the same submission sent twice makes one job."""
    key = body.get("form_key")
    if key is None:
        return None
    if not isinstance(key, str) or not 1 <= len(key) <= 64:
        raise Refused("form_key must be text of 1 to 64 characters.", {"form_key": "1 to 64 characters."})
    if wrong := bad_characters(key):
        raise Refused(f"form_key: {wrong}", {"form_key": wrong})
    return key


def _amount(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        return parse_bytes(value)  # BadAmount is a ValueError with its sentence
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadAmount(f"It must be bytes as a whole number or text such as 24 GiB, not {_kind(value)}.")
    return value


def _lists(body: Mapping[str, Any], values: dict[str, Any], wrong: dict[str, str]) -> None:
    argv = body.get("argv")
    if argv is not None:
        if isinstance(argv, list) and argv and all(isinstance(part, str) for part in argv):
            values["argv"] = tuple(argv)
        else:
            wrong["argv"] = "It must be a list of texts that begins with the program."
    for name in ("params", "environment"):
        table = body.get(name)
        if table is None:
            continue
        if not isinstance(table, dict):
            wrong[name] = f"It must be an object of names and texts, not {_kind(table)}."
        elif name == "params":
            values[name] = {k: v if isinstance(v, str) else json.dumps(v) for k, v in table.items()}
    for name in ("workers", "priority"):
        value = body.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            wrong[name] = f"It must be a whole number, not {_kind(value)}."
    limit = body.get("time_limit_s")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float)):
        wrong["time_limit_s"] = f"It must be a number of seconds, not {_kind(limit)}."


def _kind(value: Any) -> str:
    kinds = {"list": "a list", "dict": "an object", "bool": "true or false", "str": "text", "float": "a fraction"}
    return kinds.get(type(value).__name__, "a number")
