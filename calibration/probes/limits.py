"""A hard limit on device memory per control group, kept by the NVIDIA driver itself, where it can (r615 and newer).

It counts everything on the device of all processes in the group, contexts included. Setting takes root and the leaf
group that the processes are in, on the unified hierarchy; reading is everybody's. Not on MIG instances.

Each call is a process of its own, since a driver may hang: `python -m calibration.probes.limits set UUID GROUP BYTES`
(or `clear UUID GROUP`, `read UUID GROUP`) prints one line of JSON.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibration.probes.nvml_device import pynvml

ROOT = Path(__file__).resolve().parents[2]
WITHIN_S = 5.0
NONE = 0xFFFFFFFFFFFFFFFF  # no limit, in the driver's words
_POINTLESS = (
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_NOT_SUPPORTED,
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_NO_PERMISSION,
)


@dataclass(frozen=True, slots=True)
class Limit:
    """What the driver keeps for a group on one device: bytes, ``hard`` None where it keeps no limit."""

    hard: int | None
    used: int


@dataclass(frozen=True, slots=True)
class Answer:
    """``error`` is "" where it was done. ``able`` is False where asking again is pointless: it is a process each time.

    This machine knows no such limits at all then, or this account may not set any.
    """

    error: str
    able: bool
    limit: Limit | None = None


def set_limit(device: str, group: str, size: int) -> Answer:
    """Have the driver refuse what a group would take above ``size`` bytes of a device."""
    return _ask("set", device, group, str(size))


def clear(device: str, group: str) -> Answer:
    """Take the limit away; to be done before the group is removed."""
    return _ask("clear", device, group)


def read(device: str, group: str) -> Answer:
    """Return the limit of a group and what it uses now."""
    return _ask("read", device, group)


def _ask(*words: str) -> Answer:
    command = [sys.executable, "-W", "ignore", "-m", "calibration.probes.limits", *words]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WITHIN_S)
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return Answer(f"the NVIDIA driver did not answer within {WITHIN_S:g} s", True)
    except (OSError, ValueError) as error:
        return Answer(f"the limit could not be asked for: {error}", True)
    limit = Limit(found["hard"], found["used"]) if "used" in found else None
    return Answer(found["error"], found["able"], limit)


class _Set(ctypes.Structure):
    """The driver's own layout; older bindings do not have it."""

    _fields_ = [
        ("nameSpace", ctypes.c_char_p),
        ("softLimit", ctypes.c_ulonglong),
        ("hardLimit", ctypes.c_ulonglong),
    ]


class _Get(ctypes.Structure):
    _fields_ = [*_Set._fields_, ("currentUsed", ctypes.c_ulonglong)]


def _set(handle: Any, group: str, size: int) -> None:
    # A soft limit makes the driver move memory out before it refuses: a cap that only slows proves nothing.
    pynvml.nvmlDeviceSetMemoryLimits_v1(handle, _Set(group.encode(), 0, size))


def _read(handle: Any, group: str) -> Limit:
    found = _Get(group.encode(), 0, 0, 0)
    pynvml.nvmlDeviceGetMemoryLimits_v1(handle, found)
    return Limit(None if found.hardLimit == NONE else found.hardLimit, found.currentUsed)


def _done(words: Sequence[str]) -> dict[str, Any]:
    what, device, group, *size = words
    try:
        if not hasattr(pynvml, "nvmlDeviceSetMemoryLimits_v1"):
            return {"error": "the driver's bindings here know no limits per group", "able": False}
        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByUUID(device)
        calls: dict[str, Callable[[], None]] = {
            "set": lambda: _set(handle, group, int(size[0])),
            "clear": lambda: _set(handle, group, NONE),
            "read": lambda: None,
        }
        calls[what]()
        limit = _read(handle, group)
    except pynvml.NVMLError as error:
        return {"error": f"the NVIDIA driver: {error}", "able": error.value not in _POINTLESS}
    if what == "set" and limit.hard != int(size[0]):
        return {"error": f"the driver keeps {limit.hard} instead of {size[0]}", "able": True}
    return {"error": "", "able": True, "hard": limit.hard, "used": limit.used}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_done(sys.argv[1:])) + "\n")
