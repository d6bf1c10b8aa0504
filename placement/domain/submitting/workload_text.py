"""A workload as the TOML text that defines it: what is read back is the same workload, but for its variables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calibration.domain.resources import gib, parse_bytes
from placement.domain.submitting.usual_placement import AMOUNTS, NAMES
from placement.domain.submitting.workloads import Definition

_HEAD = (
    *("name", "summary", "command", "setup", "cwd", "image", "engine"),
    *("gpu", "exclusive", "workers", "time_limit_s"),
)


def write(definition: Definition, variables: Sequence[str] = ()) -> str:
    """Return the text. ``variables`` are sealed ones: they are named in a comment, their values go nowhere."""
    return "\n".join([*_head(definition), *_tables(definition), *_sealed(variables)]) + "\n"


def _head(definition: Definition) -> Iterator[str]:
    plain = Definition(name="", command="")
    for name in _HEAD:
        value = getattr(definition, name)
        if value != getattr(plain, name):
            yield f"{name} = {_value(value)}"
    for name in NAMES:
        if name in definition.placement:
            value = definition.placement[name]
            yield f"{name} = {_value(amount_text(value) if name in AMOUNTS else value)}"
    for name in ("hint_vram", "hint_ram"):
        amount = getattr(definition, name)
        if amount is not None:
            yield f"{name} = {_value(amount_text(amount))}"
    if definition.shape_varies:
        yield "shape_varies = true"
    if definition.reserves:
        yield "reserves = true"
    if definition.revoked_ends:
        yield "revoked_ends = true"
    if definition.watch_policy:
        yield f"watch_policy = {_value(definition.watch_policy)}"
    if definition.files:
        yield f"files = {_value(list(definition.files))}"


def _tables(definition: Definition) -> Iterator[str]:
    for parameter in definition.parameters:
        yield f"\n[parameters.{parameter['name']}]"
        yield f"default = {_value(str(parameter.get('default', '')))}"
        if not parameter.get("matters", True):
            yield "matters = false"
        if parameter.get("help"):
            yield f"help = {_value(str(parameter['help']))}"
    if definition.retry_policy:
        yield "\n[retry]"
        yield from (f"{name} = {_value(value)}" for name, value in definition.retry_policy.items())
    if definition.environment:
        yield "\n[environment]"
        yield from (f"{name} = {_value(value)}" for name, value in definition.environment.items())


def _sealed(variables: Sequence[str]) -> Iterator[str]:
    if variables:
        yield "\n# [environment], whose values are kept sealed:"
        yield from (f"# {name} = …" for name in variables)


def amount_text(amount: int) -> str:
    """Return bytes as a text that reads back as the same bytes."""
    shown = gib(amount)
    return shown if parse_bytes(shown) == amount else f"{amount} B"


def _value(value: Any) -> str:
    """Return a value as TOML writes it: its basic strings take what JSON escapes, and want DEL escaped, too."""
    if isinstance(value, Mapping):
        raise TypeError("a table is written as its own part")
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
