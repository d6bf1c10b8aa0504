"""What a workload says of the devices of its runs: checked as a submission's, and what of it stands beside one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from calibration.domain.errors import BadAmount
from calibration.domain.resources import gib, parse_bytes
from placement.domain.submitting.submission import Submission, problems
from placement.domain.world.requests import Gpu

COUNTS = ("min_devices", "max_devices", "prefer_max")
AMOUNTS = ("per_device_memory", "group_memory")
MEMORY = ("memory", *AMOUNTS, "even")
SORT = ("device_kind", "backend")
NAMES = (*COUNTS, *MEMORY, "device", "node", *SORT)
"""Named as in a Submission. In a definition only what differs from a submission that says nothing, bytes as numbers."""

_PLAIN = Submission(name="")


def wrong(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (field, sentence) for what a table, as TOML has it, cannot say of devices, in a submission's words."""
    amounts: dict[str, Any] = {}
    for name in AMOUNTS:
        if name in table:
            try:
                amounts[name] = parse_bytes(table[name], up=True)
            except BadAmount as error:
                yield name, str(error)
                return
    found = problems(Submission(name="workload", command="true", **_said(table), **amounts))
    yield from ((name, found[name]) for name in NAMES if name in found)


def read(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a table without fault says of devices, beside ``gpu`` and ``exclusive``."""
    said = _said(table) | {name: parse_bytes(table[name], up=True) for name in AMOUNTS if name in table}
    return {name: said[name] for name in NAMES if name in said and said[name] != getattr(_PLAIN, name)}


def _said(table: Mapping[str, Any]) -> dict[str, Any]:
    said = {name: table[name] for name in ("gpu", "exclusive", *NAMES) if name in table and name not in AMOUNTS}
    if said.get("gpu") == Gpu.GROUP and "min_devices" in said:
        said.setdefault("max_devices", said["min_devices"])
    return said


def beside(usual: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what stands of a workload's placement where a submission says these fields itself.

    What only made sense with what is said otherwise now goes: its numbers with another ``gpu``, its amounts with
    other ones, its node with another device, its device with more than one of them. With another node its device stays:
    whether that node has it is for the draft to see.
    """
    gone: set[str] = set()
    gpu = said.get("gpu", usual.get("gpu"))
    if gpu != usual.get("gpu"):
        gone |= {*COUNTS, *MEMORY, "device"}
    if gpu == Gpu.NONE:
        gone |= {*SORT, *({"exclusive"} if usual.get("exclusive") == "device" else set())}
    if said.get("memory") == "auto":
        gone |= {*MEMORY}
    elif any(name in said for name in AMOUNTS):
        gone |= {*AMOUNTS} if "group_memory" in said else {*AMOUNTS, "even"}
    if any(said.get(name, 1) > 1 for name in COUNTS[:2]):
        gone |= {"device"}
    if "device" in said:
        gone |= {"node", "device"}
    if "node" in said:
        gone |= {"node"}
    left = {name: value for name, value in usual.items() if name not in gone}
    if "min_devices" in said:
        left.pop("max_devices", None)  # so many, as where no workload says anything
    elif "max_devices" in said and "min_devices" in left:
        left["min_devices"] = min(left["min_devices"], said["max_devices"])
    return left


def told(gpu: str, said: Mapping[str, Any]) -> str:
    """Return what a workload asks for of devices in words: "2 to 4 devices, 4.0 GiB reserved of each"."""
    if gpu != Gpu.GROUP:
        first = "no device" if gpu == Gpu.NONE else "one device"
    else:
        least, most = said.get("min_devices", 1), said.get("max_devices", 1)
        first = f"a group of {least} {'device' if most == 1 else 'devices'}"
        if most > least:
            first = f"a group of {least} to {most} devices, {'as many' if said.get('prefer_max') else 'as few'} as fit"
    parts = [first]
    each, together = said.get("per_device_memory"), said.get("group_memory")
    if each is not None:
        parts.append(f"{gib(each)} reserved of {'it' if gpu == Gpu.ONE else 'each'}")
    if together is not None:
        how = "evenly" if said.get("even", True) else "by their room"
        parts.append(f"{gib(together)} reserved of all together, divided {how}")
    sort = " ".join(str(said[name]).upper() for name in reversed(SORT) if said.get(name))
    parts += [f"only {sort}"] if sort else []
    parts += [f"{name} {said[name]}" for name in ("device", "node") if said.get(name)]
    return ", ".join(parts)
