"""What else a start needs of a machine: disk for its run directory, and processes."""

from __future__ import annotations

import os
import resource
from pathlib import Path


def disk_free(path: Path) -> int | None:
    """Return bytes that this account may still write where run directories live, None where it cannot be told."""
    try:
        found = os.statvfs(path if path.exists() else path.parent)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def processes_free(running: int) -> int | None:
    """Return how many processes may still be made, by the smallest limit that is known here."""
    limits = [_number("/proc/sys/kernel/pid_max"), _number("/proc/sys/kernel/threads-max")]
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:
        limits.append(soft)
    free = [limit - running for limit in limits if limit is not None]
    allowed, current = _number("/sys/fs/cgroup/pids.max"), _number("/sys/fs/cgroup/pids.current")
    if allowed is not None and current is not None:
        free.append(allowed - current)
    return min(free, default=None)


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):
        return None
