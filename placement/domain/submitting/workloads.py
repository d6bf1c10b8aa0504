"""A workload as its author writes it down: a TOML text, checked whole before anything is stored."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from calibration.domain.errors import BadAmount
from calibration.domain.resources import parse_bytes
from placement.domain.containing import containers
from placement.domain.ending import retries, watch_policy
from placement.domain.errors import Refused
from placement.domain.jobs import Outcome
from placement.domain.submitting import usual_placement

_TEXTS = {"name": 100, "summary": 200, "command": 100_000, "setup": 10_000, "cwd": 1000, "image": 300}
_CHOICES = {
    "gpu": ("none", "one", "group"),
    "exclusive": ("no", "device", "machine"),
    "watch_policy": ("", *watch_policy.CHOICES),
    "engine": ("", *containers.ENGINES),
}
_AMOUNTS = ("hint_ram", "hint_vram")
_KNOWN = (
    *_TEXTS,
    *_CHOICES,
    *_AMOUNTS,
    *usual_placement.NAMES,
    "workers",
    "time_limit_s",
    "shape_varies",
    "reserves",
    "revoked_ends",
    "files",
    "parameters",
    "environment",
    "retry",
)
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Definition:
    """A workload to be stored. Hints in bytes; parameters as the model keeps them, ``placement`` as usual_placement."""

    name: str
    command: str
    summary: str = ""
    setup: str = ""
    cwd: str = ""
    gpu: str = "none"
    exclusive: str = "no"
    placement: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 1
    time_limit_s: float | None = None
    hint_ram: int | None = None
    hint_vram: int | None = None
    shape_varies: bool = False
    reserves: bool = False
    revoked_ends: bool = False
    watch_policy: str = ""
    image: str = ""
    engine: str = ""
    files: tuple[str, ...] = ()
    parameters: tuple[Mapping[str, Any], ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    retry_policy: Mapping[str, Any] = field(default_factory=dict)


def parse(text: str) -> Definition:
    """Return what a TOML text defines. Raise Refused with a sentence per wrong field."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Refused(f"This is not TOML: {error}.") from error
    except RecursionError:
        raise Refused("This is not TOML that can be read: it is nested too deep.") from None
    return check(table)


def check(table: Mapping[str, Any]) -> Definition:
    """Return what a table, as TOML has it, defines. Raise Refused with a sentence per wrong field."""
    wrong: dict[str, str] = {}
    for name, sentence in _problems(table):
        wrong.setdefault(name, sentence)
    if wrong:
        raise Refused(" ".join(f"{name}: {sentence}" for name, sentence in wrong.items()), wrong)
    apart = {*_AMOUNTS, *usual_placement.NAMES, "parameters", "files", "retry"}
    values = {name: table[name] for name in table if name not in apart}
    values |= {name: parse_bytes(table[name]) for name in _AMOUNTS if name in table}
    values["placement"] = usual_placement.read(table)
    values["files"] = tuple(table.get("files", ()))
    values["parameters"] = tuple(
        {
            "name": name,
            "default": str(p.get("default", "")),
            "matters": p.get("matters", True),
            "help": p.get("help", ""),
        }
        for name, p in table.get("parameters", {}).items()
    )
    values["retry_policy"] = retries.to_json(_retry(table.get("retry")))
    return Definition(**values)


def placeholders(command: str) -> tuple[str, ...]:
    """Return the names in braces, in their order."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(command)))


def _problems(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in table:
        if name not in _KNOWN:
            yield name, f"There is no such field; known are {', '.join(sorted(_KNOWN))}."
    for name in ("name", "command"):
        if not str(table.get(name, "")).strip():
            yield name, "It is missing."
    for name, most in _TEXTS.items():
        value = table.get(name, "")
        if not isinstance(value, str) or len(value) > most or "\0" in value:
            yield name, f"It must be text of at most {most:,} characters."
    for name, choices in _CHOICES.items():
        if table.get(name, choices[0]) not in choices:
            yield name, f"It is one of {', '.join(filter(None, choices))}."
    if table.get("gpu", "none") == "none" and (table.get("exclusive") == "device" or "hint_vram" in table):
        yield "gpu", 'A workload without a device cannot have one alone, nor a hint of its memory; set gpu = "one".'
    yield from usual_placement.wrong(table)
    yield from _container(table)
    for name in _AMOUNTS:
        try:
            parse_bytes(table.get(name, "1 MiB"))
        except BadAmount as error:
            yield name, str(error)
    yield from _numbers(table)
    yield from _retries(table)
    yield from _tables(table)


def _container(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    image, environment = table.get("image", ""), table.get("environment", {})
    if not isinstance(image, str):
        return
    if image and (wrong := containers.problem(containers.ENGINES[0], image)):
        yield "image", wrong
    if image and isinstance(environment, dict) and (wrong := containers.refused_names(environment)):
        yield "environment", wrong
    if table.get("engine") and not image:
        yield "engine", "Without an image nothing runs in a container; name one, or leave the engine out."


def _numbers(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    workers, limit = table.get("workers", 1), table.get("time_limit_s", 1)
    if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= 10_000:
        yield "workers", "It is a whole number from 1 to 10,000."
    if isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < 1e9:
        yield "time_limit_s", "It is a number of seconds above 0."
    for name in ("shape_varies", "reserves", "revoked_ends"):
        if not isinstance(table.get(name, False), bool):
            yield name, "It is true or false."


def _retry(table: Mapping[str, Any] | None) -> retries.Policy | None:
    if not table:
        return None
    on = tuple(Outcome(o) for o in table.get("on", ())) or retries.USUAL
    wait, longest = table.get("wait_s", retries.WAIT_S), table.get("longest_s", retries.LONGEST_WAIT_S)
    return retries.Policy(table["times"], on, float(wait), float(longest))


def _retries(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    retry = table.get("retry", {})
    if not isinstance(retry, dict) or (retry and set(retry) - {"times", "on", "wait_s", "longest_s"}):
        yield "retry", "It is a table [retry] with times, on (a list of ends), wait_s and longest_s."
        return
    times, on = retry.get("times", 0 if not retry else None), retry.get("on", [])
    if isinstance(times, bool) or not isinstance(times, int) or not 0 <= times <= retries.MOST_TIMES:
        yield "retry", f"times is a whole number from 0 to {retries.MOST_TIMES}."
    if not isinstance(on, list) or not all(isinstance(o, str) and o in set(retries.REPEATABLE) for o in on):
        yield "retry", f"on is a list of {', '.join(retries.REPEATABLE)}."
    for name in ("wait_s", "longest_s"):
        wait = retry.get(name, 0)
        if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= retries.MOST_WAIT_S:
            yield "retry", f"{name} is a number of seconds from 0 to {retries.MOST_WAIT_S:,.0f}."


def _tables(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    files = table.get("files", [])
    if not isinstance(files, list) or not all(isinstance(f, str) and f and "\0" not in f for f in files):
        yield "files", "It is a list of the source files that decide what is learned."
    environment = table.get("environment", {})
    if not isinstance(environment, dict) or not all(
        _NAME.fullmatch(k) and isinstance(v, str) and "\0" not in v for k, v in environment.items()
    ):
        yield "environment", "It is a table of variables: names with texts."
    parameters = table.get("parameters", {})
    if not isinstance(parameters, dict) or not all(isinstance(p, dict) for p in parameters.values()):
        yield "parameters", "It is a table of tables: [parameters.NAME] with default, matters and help."
        return
    for name, parameter in parameters.items():
        unknown = set(parameter) - {"default", "matters", "help"}
        if not _NAME.fullmatch(name) or unknown or not isinstance(parameter.get("matters", True), bool):
            yield "parameters", f"{name}: a parameter has a plain name, and default, matters (true or false) and help."
    missing = sorted(set(placeholders(str(table.get("command", "")))) - set(parameters))
    if missing:
        yield "command", f"It names {', '.join(missing)}, for which there is no [parameters.…] table."
