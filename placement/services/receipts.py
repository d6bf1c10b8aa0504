"""What a job's processes wrote down about their caps: the job's own word, which says something of itself alone.

Files of ``receipts/``: PID.FRAMEWORK-armed.json, -applied.json, -exit.json (docs/settings.md). Whatever is no regular
file, no JSON or no count of bytes says nothing.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from placement.domain.containing.device_caps import Applied

LONGEST = 8 << 10  # bytes of a receipt
MOST = 1000  # receipts that are opened, and processes that are named
FRAMEWORKS = {"simulated": "the simulated device"}
_NAME = re.compile(r"([1-9][0-9]{0,8})\.([a-z][a-z0-9_]{0,19})-(armed|applied|exit)\.json")
_LARGEST = 1 << 60  # bytes


@dataclass(frozen=True, slots=True)
class Receipts:
    """``armed`` are pids in which a framework will be told, ``reserved`` what a pid's framework held at most."""

    armed: tuple[int, ...] = ()
    applied: tuple[Applied, ...] = ()
    reserved: Mapping[int, int] = field(default_factory=dict)


def read(run_dir: Path, device: str) -> Receipts:
    """Return what was told about one device."""
    armed, applied, reserved = list[int](), list[Applied](), dict[int, int]()
    opened = 0
    try:
        names = sorted(os.listdir(run_dir / "receipts"))
    except OSError:
        return Receipts()
    for name, found in [(name, found) for name in names if (found := _NAME.fullmatch(name))]:
        pid, framework, kind = int(found[1]), FRAMEWORKS.get(found[2], found[2]), found[3]
        if kind == "armed":  # each loader process that ever was has one: they must not keep the others from being read
            armed.append(pid)
            continue
        if opened == MOST:
            continue
        opened += 1
        content = plain(run_dir / "receipts" / name)
        if kind == "applied":
            one = _of_device(content.get("devices"), device)
            if one is not None:
                together = one.get("together") is True
                applied.append(Applied(pid, framework, count(one.get("pool")), count(one.get("processes")), together))
        else:
            held = content.get("reserved")
            amount = count(held.get(device, held.get(""))) if isinstance(held, dict) else None
            if amount is not None:
                reserved[pid] = amount
    return Receipts(tuple(sorted(set(armed)))[:MOST], tuple(applied), reserved)


def own_number(pid: int, proc: str = "/proc") -> int:
    """Return the pid by which a process knows itself: in a container it is another than the machine's."""
    try:
        with open(f"{proc}/{pid}/status", encoding="ascii", errors="replace") as file:
            found = next((line.split() for line in file if line.startswith("NSpid:")), [])
    except OSError:
        return pid
    return int(found[-1]) if len(found) > 1 and found[-1].isdecimal() else pid


def plain(path: Path, longest: int = LONGEST) -> dict[str, Any]:
    """Return the JSON object in a regular file that is not longer, {} for anything else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > longest:
                raise OSError(errno.EINVAL, "it is no receipt", str(path))
            content = json.loads(os.pread(descriptor, longest, 0))
        finally:
            os.close(descriptor)
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _of_device(rows: object, device: str) -> dict[str, Any] | None:
    """Return the row of a device; one without a name is of the only device that there is."""
    for row in rows[:64] if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("uuid") in (device, ""):
            return row
    return None


def count(value: object) -> int | None:
    """Return a count of bytes or processes, None for anything else that stands in its place."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST else None
