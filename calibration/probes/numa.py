"""Memory that the kernel lists as the machine's and that is a device's: nodes without processors, as large as one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

_NEAR = 0.05  # of the device's size: the kernel and the driver each keep some of it
_GIVES_BACK = ("MemFree", "Active(file)", "Inactive(file)", "SReclaimable")


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """One such node. Bytes; ``available`` is what the kernel would count of it as available, at most ``total``."""

    number: int
    total: int
    available: int


def device_nodes(sys_root: str, sizes: Collection[int]) -> list[DeviceNode]:
    """Return the memory-only nodes whose size is that of a device, each device once. Never raises.

    Memory behind a link of its own (CXL) has no processors either; its size is no device's.
    """
    left = sorted(sizes)
    found = []
    try:
        folders = sorted(Path(sys_root, "devices/system/node").glob("node[0-9]*"))
    except OSError:
        return []
    for folder in folders if left else []:
        figures = _figures(folder)
        total = figures.get("MemTotal", 0)
        match = next((size for size in left if total and abs(size - total) <= _NEAR * size), None)
        if match is not None:
            left.remove(match)
            available = min(total, sum(figures.get(name, 0) for name in _GIVES_BACK))
            found.append(DeviceNode(int(folder.name[4:]), total, available))
    return found


def _figures(folder: Path) -> dict[str, int]:
    """Return a node's figures in bytes, {} where it has processors or cannot be read."""
    found: dict[str, int] = {}
    try:
        if (folder / "cpulist").read_text().strip():
            return {}
        for line in (folder / "meminfo").read_text().splitlines():
            _, _, name, size, *_ = line.replace(":", " ").split()
            found[name] = int(size) * 1024
    except (OSError, ValueError):
        return {}
    return found
