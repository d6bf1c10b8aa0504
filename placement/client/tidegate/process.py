"""Who asks: this process, by what no later process can be taken for."""

from __future__ import annotations

import os
from typing import Any


def identity() -> dict[str, Any]:
    """Return pid, start time (clock ticks since boot, None where unknown), boot id and PID namespace."""
    return {"pid": os.getpid(), "started": _started(), "boot": _boot(), "namespace": _namespace()}


def _started() -> int | None:
    try:
        with open("/proc/self/stat", "rb") as stat:
            # The name in brackets may hold anything; what follows the last bracket is field 3.
            return int(stat.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _boot() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as boot:
            return boot.read().strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
