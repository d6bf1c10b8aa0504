"""The part of a JSON body that says when and how often a job may run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placement.domain import terms
from placement.domain.conditions import After

FIELDS = ("after", "not_before", "array", "array_limit", "retry_times", "retry_on", "retry_wait_s")


def read(body: Mapping[str, Any], values: dict[str, Any], wrong: dict[str, str]) -> None:
    """Put what the body says into ``values``, a sentence per field of a wrong kind into ``wrong``."""
    for name in ("array", "array_limit", "retry_times"):
        if body.get(name) is not None:
            values[name] = body[name]  # the service says what is wrong with it
    if body.get("retry_wait_s") is not None:
        values["retry_wait_s"] = body["retry_wait_s"]
    if body.get("retry_on") is not None:
        asked = body["retry_on"]
        values["retry_on"] = tuple(_word(one) for one in asked) if isinstance(asked, list) else asked
    if body.get("not_before") is not None:
        _moment(body["not_before"], values, wrong)
    if body.get("after") is not None:
        _after(body["after"], values, wrong)


def _word(asked: Any) -> Any:
    """Return the name of an end as the API spells it, of what pages and messages write: "out of memory"."""
    return asked.strip().lower().replace(" ", "_") if isinstance(asked, str) else asked


def _moment(asked: Any, values: dict[str, Any], wrong: dict[str, str]) -> None:
    if not isinstance(asked, str):
        wrong["not_before"] = "It must be text such as 2026-12-01T08:00+01:00."
        return
    try:
        values["not_before"] = terms.parse_moment(asked, None)
    except ValueError as problem:
        wrong["not_before"] = str(problem)


def _after(asked: Any, values: dict[str, Any], wrong: dict[str, str]) -> None:
    pairs = []
    for one in asked if isinstance(asked, list) else [None]:
        if isinstance(one, dict) and set(one) <= {"job", "when"} and "job" in one:
            pairs.append((one["job"], one.get("when", After.OK.value)))
        elif isinstance(one, int) and not isinstance(one, bool):
            pairs.append((one, After.OK.value))
        else:
            wrong["after"] = 'It must be a list of jobs: 12, or {"job": 12, "when": "ok"}; when is ok, any or failed.'
            return
    values["after"] = tuple(pairs)
