"""What an audit entry says of a change, as people read it: what differs, with units."""

from __future__ import annotations

from typing import Any

from calibration.domain.resources import MIB, gib
from placement.selectors.wording import mapping


def words(detail: Any) -> str:
    """Return the detail of an entry as one line; of a before and an after only what differs, "" where there is none."""
    body = mapping(detail)
    parts = []
    if "before" in body and "after" in body:
        parts += _change(body["before"], body["after"])
    elif "after" in body or "before" in body:
        parts += [f"{name} {_value(body[name])}" for name in ("before", "after") if name in body]
    parts += [f"{_name(name)}: {_value(value)}" for name, value in body.items() if name not in ("before", "after")]
    return "; ".join(parts)


def _change(before: Any, after: Any) -> list[str]:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return [f"{_value(before)} → {_value(after)}"]
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return [f"{_name(name)}: {_value(before.get(name))} → {_value(after.get(name))}" for name in names]


def _name(name: Any) -> str:
    return str(name).replace("_", " ")


def _value(value: Any) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return gib(value) if value >= MIB else str(value)
    if isinstance(value, dict):
        return ", ".join(f"{_name(name)} {_value(one)}" for name, one in value.items())
    return ", ".join(map(_value, value)) if isinstance(value, list) else str(value)
