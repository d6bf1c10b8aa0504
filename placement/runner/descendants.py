"""Everything a process has started that still lives, and what it holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from placement.runner.identity import Stat, read_bytes, read_stat

# One page of resident memory, in bytes (statm counts pages).
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# A record names this many at most; a storm of processes must not make a record of megabytes.
MAX_LISTED = 100


class Member(NamedTuple):
    """One process of a run, as a record keeps it. Memory that cannot be read is None."""

    pid: int
    start_ticks: int
    name: str
    rss_bytes: int | None


def list_pids() -> list[int]:
    """Return every pid that /proc shows."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def children_of(pid: int) -> list[int]:
    """Return the pids whose parent is `pid`, zombies included.

    The kernel's own list is read where it has one (one short read a thread), else all of /proc is searched.
    """
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found: list[int] = []
    for thread in threads:
        raw = read_bytes(f"/proc/{pid}/task/{thread}/children", 1 << 20)
        if raw is None:
            if thread == str(pid) and read_stat(pid) is not None:
                return _children_by_search(pid)
            continue
        found += [int(word) for word in raw.split()]
    return found


def _children_by_search(pid: int) -> list[int]:
    stats = (read_stat(other) for other in list_pids())
    return [stat.pid for stat in stats if stat is not None and stat.ppid == pid]


def walk(
    root: int,
    children: Callable[[int], Iterable[int]] = children_of,
    stat_of: Callable[[int], Stat | None] = read_stat,
) -> list[Stat]:
    """Return the living descendants of `root`, nearest first, without `root` and without zombies.

    A link counts only where the parent started no later than the child: otherwise the pid has changed hands.
    An empty answer proves nothing (a child may have moved while we looked); only wait() does.
    """
    top = stat_of(root)
    if top is None:
        return []
    seen = {root}
    living: list[Stat] = []
    queue = [top]
    for parent in queue:
        for pid in children(parent.pid):
            if pid in seen:
                continue
            stat = stat_of(pid)
            if stat is None or stat.start_ticks < parent.start_ticks:
                continue
            seen.add(pid)
            queue.append(stat)
            if not stat.gone:
                living.append(stat)
    return living


def rss_bytes(pid: int) -> int | None:
    """Return the resident memory of a process in bytes, None where it cannot be read."""
    words = (read_bytes(f"/proc/{pid}/statm") or b"").split()
    return int(words[1]) * PAGE_BYTES if len(words) > 1 else None


def describe(stats: Iterable[Stat]) -> list[Member]:
    """Return the members as a record names them, largest first."""
    members = [Member(stat.pid, stat.start_ticks, stat.name, rss_bytes(stat.pid)) for stat in stats]
    return sorted(members, key=lambda member: -(member.rss_bytes or 0))
