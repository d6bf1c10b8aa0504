"""The slow and well-known way to look at a host, through psutil: for rare questions and for comparison."""

from __future__ import annotations

import psutil


def host_memory() -> tuple[int, int]:
    """Return (total, available) bytes of the host, whatever control groups allow."""
    memory = psutil.virtual_memory()
    return int(memory.total), int(memory.available)


def boot_time() -> float:
    """Return the unix second at which this machine was started, as its wall clock sees it now."""
    return float(psutil.boot_time())


def users() -> list[str]:
    """Return who is logged in, each name once, sorted."""
    return sorted({user.name for user in psutil.users()})


def walk() -> dict[int, tuple[int, int]]:
    """Return (parent, resident bytes) by pid, as the raw walk should see them."""
    found: dict[int, tuple[int, int]] = {}
    for process in psutil.process_iter(["ppid", "memory_info"]):
        memory = process.info["memory_info"]
        if memory is not None and process.info["ppid"] is not None:
            found[process.pid] = (process.info["ppid"], memory.rss)
    return found
