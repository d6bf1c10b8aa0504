"""Sweeps: lists of values for the {names} of one command, and the jobs that their product makes."""

from __future__ import annotations

import itertools
import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol

MOST_JOBS = 1000
"""Members of a sweep differ in what they need, so each is asked about and stored by itself; an array's are alike."""
MOST_NAMES = 10
LONGEST_VALUE = 500  # characters
INDEX = "index"  # {index} is the place of a member in its array, and counts by itself

Axes = Mapping[str, tuple[str, ...]]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
_LINE = re.compile(r"\s*([^\s=:]+)\s*[=:]\s*(.*?)\s*", re.DOTALL)
_NUMBER = r"[+-]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:[eE][+-]?\d{1,3})?"
_RANGE = re.compile(rf"({_NUMBER})\s*\.\.\s*({_NUMBER})(?:\s+(step|log)\s+({_NUMBER}))?", re.ASCII)
_PART = re.compile(r"""\s*("[^"]*"|'[^']*'|[^,"']*)\s*(,|$)""")
_PLACE = re.compile(r"(?<!\$)\{([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)


class Asked(Protocol):
    """The fields of a submission that are looked at here."""

    @property
    def command(self) -> str: ...
    @property
    def argv(self) -> tuple[str, ...] | None: ...
    @property
    def workload(self) -> str: ...
    @property
    def array(self) -> int: ...
    @property
    def sweep(self) -> Axes: ...
    @property
    def sweep_same(self) -> tuple[str, ...]: ...


def parse(text: str) -> dict[str, tuple[str, ...]]:
    """Return the values by name of lines such as ``lr = 0.1, 0.01`` or ``n = 1..100 step 10``. Raise ValueError."""
    found: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"{line.strip()[:60]!r} lists no values. Write a line such as lr = 0.1, 0.01 or n = 1..5.")
        name, listed = match.groups()
        if name in found:
            raise ValueError(f"{name} is there twice; put all of its values into one line.")
        found[name] = values(listed, name)
    return found


def read(asked: Any) -> dict[str, tuple[str, ...]]:
    """Return the values by name of a JSON value: lines as text, or an object of lists or texts. Raise ValueError."""
    if isinstance(asked, str):
        return parse(asked)
    if not isinstance(asked, dict):
        raise ValueError('It must be an object such as {"lr": [0.1, 0.01], "n": "1..5"}.')
    return {str(name): _listed(str(name), given) for name, given in asked.items()}


def values(listed: str, name: str = "This") -> tuple[str, ...]:
    """Return the values of ``0.1, 0.01``, ``1..5``, ``"a, b", c``. Raise ValueError with a sentence."""
    found: list[str] = []
    at = 0
    while True:
        match = _PART.match(listed, at)
        if match is None:
            raise ValueError(f"{name}: {listed[at:][:40]!r} cannot be read; a value with a comma goes between quotes.")
        part = match[1].strip()
        if part[:1] in ("'", '"'):
            found.append(part[1:-1])
        elif not part:
            raise ValueError(f"{name} has an empty value; write '' for one that is meant to be empty.")
        else:
            found += _range(part, name)
        if len(found) > MOST_JOBS:
            raise ValueError(f"{name} has more than {MOST_JOBS:,} values; a sweep makes at most so many jobs.")
        at = match.end()
        if not match[2]:
            return tuple(found)


def as_text(axes: Axes) -> str:
    """Return axes as lines that parse() takes back."""
    return "\n".join(f"{name} = {', '.join(_shown(value) for value in found)}" for name, found in axes.items())


def count(axes: Axes) -> int:
    """Return how many jobs the product makes, 0 for no axes and for what are none."""
    return math.prod(len(found) for found in axes.values()) if axes and _are_axes(axes) else 0


def combinations(axes: Axes) -> Iterator[dict[str, str]]:
    """Yield the values of each job; those of the last name change fastest."""
    for chosen in itertools.product(*axes.values()):
        yield dict(zip(axes, chosen, strict=True))


def placeholders(text: str) -> tuple[str, ...]:
    """Return the {names} in a text, each once; ``${name}`` is the shell's, {index} an array's."""
    return tuple(name for name in dict.fromkeys(_PLACE.findall(text)) if name != INDEX)


def filled(command: str, chosen: Mapping[str, str]) -> str:
    """Return a command with its placeholders filled in, each value as one word of the shell; others stay."""
    return _PLACE.sub(lambda m: shlex.quote(chosen[m[1]]) if m[1] in chosen else m[0], command)


def list_filled(argv: Sequence[str], chosen: Mapping[str, str]) -> tuple[str, ...]:
    """Return an argument list with its placeholders filled in; no shell reads it, so nothing is quoted."""
    return tuple(_PLACE.sub(lambda m: chosen.get(m[1], m[0]), part) for part in argv)


def member_name(name: str, chosen: Mapping[str, str]) -> str:
    """Return the name of one job: with its values where the name has a place for them, else behind it."""
    shown = _PLACE.sub(lambda m: chosen.get(m[1], m[0]), name)
    if shown == name:
        shown = f"{name} {', '.join(f'{key}={value}' for key, value in chosen.items())}"
    shown = " ".join(shown.split())
    return shown if len(shown) <= 200 else f"{shown[:199]}…"


def at_once(places: Sequence[Mapping[str, Any]], *, alone: bool) -> int | None:
    """Return how many such jobs the room of these places holds together, None where that is not known.

    ``places`` are candidates of a decision as kept: ``room`` and ``need`` in bytes by pool. RAM is shared by the
    devices of a node; ``alone``: first runs, one a device.
    """
    fit: dict[str, int] = {}
    ram: dict[str, int] = {}
    for place in places:
        node, need, room = str(place.get("node")), place.get("need") or {}, place.get("room") or {}
        device = place.get("device")
        many = [max(0, room[pool]) // need[pool] for pool in need if need[pool] and room.get(pool) is not None]
        of_ram = [max(0, room["ram"]) // need["ram"]] if need.get("ram") and room.get("ram") is not None else []
        if alone:
            fits = all(check.get("ok") for check in place.get("checks") or ())
            if fits and not device:
                return None  # each takes a share of the RAM that is left: how many that lets in is not known
            many = [1 if fits else 0]
        elif device and (not need.get(device) or room.get(device) is None):
            return None
        if not many:
            return None
        fit[node] = fit.get(node, 0) + min(many) if device else min(many)
        ram |= {node: of_ram[0]} if of_ram else {}
    return sum(min(count, ram.get(node, count)) for node, count in fit.items()) if fit else None


def problems(s: Asked) -> Iterator[tuple[str, str]]:
    """Yield (field, sentence) for what cannot be taken; no value of any type raises."""
    axes: Any = s.sweep
    if not _are_axes(axes):
        yield "sweep", "It must be names, each with a list of texts."
        return
    same: Any = s.sweep_same
    if not isinstance(same, tuple) or not all(isinstance(name, str) for name in same):
        yield "sweep_same", "It must be a list of names."
        return
    unknown = sorted(set(same) - set(axes))
    if unknown:
        yield "sweep_same", f"The sweep has no values for {', '.join(unknown)[:100]}."
    elif same and s.workload:
        yield "sweep_same", "A workload says itself which of its parameters do not change memory (matters = false)."
    if not axes:
        return
    if len(axes) > MOST_NAMES:
        yield "sweep", f"It has {len(axes):,} names; {MOST_NAMES} are the most."
    if s.array:
        yield "array", "A sweep makes its jobs by itself; leave this empty, or leave out the sweep."
    for name, found in axes.items():
        yield from (("sweep", said) for said in _values_problems(name, found))
    if (made := count(axes)) > MOST_JOBS:
        sizes = " x ".join(f"{len(found):,}" for found in axes.values())
        yield (
            "sweep",
            f"{sizes} values make {made:,} jobs; {MOST_JOBS:,} are the most, as each is asked about by itself. "
            "Leave some values out, or submit it in parts.",
        )
    yield from _places_problems(s, axes)


def _values_problems(name: Any, found: tuple[str, ...]) -> Iterator[str]:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == INDEX:
        yield f"{str(name)[:40]!r} is no name for values: letters, digits and _, and not index, which counts by itself."
    elif not found:
        yield f"{name} has no values."
    elif len(set(found)) < len(found):
        twice = next(v for n, v in enumerate(found) if v in found[:n])
        yield f"{name} has {twice[:40]!r} twice; each value makes a job of its own, so once is enough."
    elif any(len(v) > LONGEST_VALUE or "\0" in v or not v.isprintable() for v in found):
        yield f"{name} has a value that is longer than {LONGEST_VALUE} characters, or holds signs that cannot be seen."


def _places_problems(s: Asked, axes: Axes) -> Iterator[tuple[str, str]]:
    if s.workload or not isinstance(s.command, str):
        return  # which parameters a workload has is known where it is read
    words = s.argv if isinstance(s.argv, tuple) else (s.command,)
    there = {name for word in words if isinstance(word, str) for name in placeholders(word)}
    if missing := [str(name) for name in axes if name not in there]:
        marks = ", ".join(f"{{{name}}}" for name in missing)
        yield "sweep", f"The command has no place for {', '.join(missing)}: write {marks} where the value goes."


def _are_axes(axes: object) -> bool:
    if not isinstance(axes, Mapping):
        return False
    return all(isinstance(found, tuple) and all(isinstance(v, str) for v in found) for found in axes.values())


def _listed(name: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str):
        return values(given, name)
    if not isinstance(given, list):
        raise ValueError(f"{name}: it must be a list of values, or a text such as 1..5.")
    found = []
    for value in given:
        if isinstance(value, dict | list) or value is None:
            raise ValueError(f"{name}: a value is a text, a number, true or false.")
        found.append(value if isinstance(value, str) else json.dumps(value))
    return tuple(found)


def _shown(value: str) -> str:
    """Return one value as it is written in a line."""
    plain = value and value == value.strip() and not set(value) & set(",\"'") and not _RANGE.fullmatch(value)
    if plain:
        return value
    return f"'{value}'" if "'" not in value else f'"{value}"'


def _range(part: str, name: str) -> list[str]:
    match = _RANGE.fullmatch(part)
    if match is None:
        return [part]
    try:
        first, last = Decimal(match[1]), Decimal(match[2])
        by = Decimal(match[4]) if match[4] else None
    except InvalidOperation:  # pragma: no cover - the pattern lets no such number through
        raise ValueError(f"{name}: {part[:40]!r} is no range of numbers.") from None
    return _log(name, part, first, last, by) if match[3] == "log" else _steps(name, part, first, last, by)


def _steps(name: str, part: str, first: Decimal, last: Decimal, by: Decimal | None) -> list[str]:
    step = by if by is not None else Decimal(1 if last >= first else -1)
    if step == 0 or (last - first) * step < 0:
        raise ValueError(f"{name}: with steps of {step} one never comes from {first} to {last}.")
    if abs(last - first) / abs(step) >= MOST_JOBS:
        raise ValueError(f"{name}: {part[:40]!r} is more than {MOST_JOBS:,} values.")
    made = int((last - first) / step) + 1
    return [_number(first + step * n) for n in range(made)]


def _log(name: str, part: str, first: Decimal, last: Decimal, by: Decimal | None) -> list[str]:
    fine = first > 0 and last > 0 and first != last and max(abs(first.adjusted()), abs(last.adjusted())) <= 300
    if by is None or by != int(by) or not 2 <= by <= MOST_JOBS or not fine:
        raise ValueError(
            f"{name}: {part[:40]!r} is no such range: log N makes N values (2 to {MOST_JOBS:,}) from one number to "
            "another, both between 1e-300 and 1e300, such as 1e-4..1e-1 log 4."
        )
    low, high, made = math.log(first), math.log(last), int(by)
    return [f"{math.exp(low + (high - low) * n / (made - 1)):.6g}" for n in range(made)]


def _number(value: Decimal) -> str:
    """Return a number without needless zeros, small and large ones with an exponent."""
    if value == value.to_integral_value() and abs(value) < 10**15:
        return str(int(value))
    return f"{value.normalize():f}" if abs(value) >= Decimal("0.0001") else f"{value.normalize():e}".replace("e+0", "")
