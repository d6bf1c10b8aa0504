"""One job's control group: made, joined, limited, read, killed and removed by plain file operations.

A job's group is one folder on cgroup v2, or two where main memory is still governed by v1: one in the unified tree,
which kills and tells who is in it, and one with the memory files. Bytes are integers; None is unknown.
"""

from __future__ import annotations

import contextlib
import errno
import os
from typing import Any, NamedTuple

from placement.runner.identity import read_bytes

_NO_LIMIT_V1 = 1 << 60  # v1 writes "none" as a number of pages near 2**63
_NEAR_LIMIT = 4 << 20  # v1: a highest use this near to the limit reached it
_DEEPEST = 32


class Group(NamedTuple):
    """``path``: the folder in the unified tree, "" without one. ``memory``: that of the memory files, "" without."""

    path: str
    memory: str
    version: int  # of the memory files


NONE = Group("", "", 2)
"""No group: nothing is in it, and nothing can be done with it."""


def write(path: str, text: str) -> None:
    """Write one value; the kernel's refusal comes as OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode("ascii"))
    finally:
        os.close(descriptor)


def make(group: Group) -> None:
    """Make the folders of a group; OSError where one cannot be made. Those that are there stay."""
    for folder in dict.fromkeys((group.path, group.memory)):
        if folder:
            with contextlib.suppress(FileExistsError):
                os.mkdir(folder, 0o755)


def join(group: Group, pid: int) -> None:
    """Move a process into the group; OSError where it may not be."""
    for folder in dict.fromkeys((group.path, group.memory)):
        if folder:
            write(os.path.join(folder, "cgroup.procs"), str(pid))


def set_limit(group: Group, limit: int | None) -> None:
    """Keep the group within so many bytes of main memory, and out of swap; None lifts the limit. OSError if refused.

    On v2 a breach ends the whole group, so that no half of a job goes on. Below what is used the kernel would kill
    at once: that is for the caller to know.
    """
    if not group.memory:
        raise OSError(errno.ENOENT, "no memory controller")
    if group.version == 1:
        _limit_v1(group.memory, limit)
        return
    write(os.path.join(group.memory, "memory.max"), "max" if limit is None else str(limit))
    for name, value in (("memory.swap.max", "max" if limit is None else "0"), ("memory.oom.group", "1")):
        with contextlib.suppress(FileNotFoundError):  # no swap in this kernel, or one before 4.19
            write(os.path.join(group.memory, name), value)


def _limit_v1(folder: str, limit: int | None) -> None:
    value = str(-1 if limit is None else limit)
    both = os.path.join(folder, "memory.memsw.limit_in_bytes")
    plain = os.path.join(folder, "memory.limit_in_bytes")
    if not os.path.exists(both):
        write(plain, value)
        return
    # Memory with swap may never be less than memory alone, so which comes first depends on the way it goes.
    for path in (plain, both):
        try:
            write(path, value)
        except OSError:
            write(both, value)
            write(plain, value)
            return


def limit_of(group: Group) -> int | None:
    """Return the limit in bytes that is in force, None where there is none or it cannot be read."""
    name = "memory.max" if group.version == 2 else "memory.limit_in_bytes"
    value = _number(group.memory, name)
    return value if value is not None and value < _NO_LIMIT_V1 else None


def need(group: Group) -> int | None:
    """Return the bytes that the group needs: anonymous, shared and kernel memory, file cache left out.

    Exact at the cost of one read, shared pages once. What lies in /dev/shm stays in it after its writer closed it.
    """
    found = _table(group.memory, "memory.stat")
    if group.version == 1:
        parts = [found.get(f"total_{kind}") for kind in ("rss", "shmem")]
        return None if parts[0] is None else parts[0] + (parts[1] or 0)
    if "anon" not in found:
        return None
    # What the kernel keeps of names and inodes it gives back under pressure, as it does file pages.
    kernel = max(0, found.get("kernel", 0) - found.get("slab_reclaimable", 0))
    return found["anon"] + found.get("shmem", 0) + kernel


def figures(group: Group) -> dict[str, Any] | None:
    """Return what an exit record keeps of the group, None where it has no memory files.

    ``oom`` counts how often its own limit could not be met, ``oom_kill`` its processes that were killed for memory
    by whatever limit: only both together say that its own limit ended it.
    """
    if not group.memory:
        return None
    kept: dict[str, Any] = {"path": group.path or group.memory, "version": group.version, "memory_max": limit_of(group)}
    if group.version == 1:
        kills = _table(group.memory, "memory.oom_control").get("oom_kill")
        peak = _number(group.memory, "memory.max_usage_in_bytes")
        reached = peak is not None and kept["memory_max"] is not None and peak >= kept["memory_max"] - _NEAR_LIMIT
        kept |= {"oom": kills if reached else 0, "oom_kill": kills, "oom_group_kill": None, "memory_peak": peak}
        return kept
    events = _table(group.memory, "memory.events")
    own = _table(group.memory, "memory.events.local") or events
    kept |= {"oom": own.get("oom"), "oom_kill": events.get("oom_kill"), "oom_group_kill": events.get("oom_group_kill")}
    return {**kept, "memory_peak": _number(group.memory, "memory.peak")}


def killed_for_memory(group: Group) -> bool:
    """Return whether the kernel has killed a process of this group for memory."""
    if not group.memory:
        return False
    name = "memory.events" if group.version == 2 else "memory.oom_control"
    return bool(_table(group.memory, name).get("oom_kill"))


def kill(group: Group) -> bool:
    """End every process of the group and of those below it with one write; False where the kernel has no such file."""
    if not group.path:
        return False
    try:
        write(os.path.join(group.path, "cgroup.kill"), "1")
    except OSError:
        return False
    return True


def populated(group: Group) -> bool:
    """Return whether a process is in the group or below; False, too, where nobody can tell."""
    return bool(group.path) and _table(group.path, "cgroup.events").get("populated") == 1


def pids(group: Group) -> list[int]:
    """Return the processes in the group and below."""
    found: list[int] = []
    for folder in _folders(group.path or group.memory):
        for word in (read_bytes(os.path.join(folder, "cgroup.procs"), 1 << 20) or b"").split():
            found.append(int(word))
    return [pid for pid in dict.fromkeys(found) if pid > 1]  # 0 stands for one that we cannot see


def remove(group: Group) -> bool:
    """Remove the group with those that the job made below it; False where something is left in it."""
    gone = True
    for top in dict.fromkeys((group.path, group.memory)):
        for folder in reversed(_folders(top)):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                gone = False
    return gone


def _folders(top: str, depth: int = 0) -> list[str]:
    """Return a group and those below it, parents first."""
    if not top:
        return []
    found = [top]
    try:
        with os.scandir(top) as entries:
            below = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return found
    for folder in below if depth < _DEEPEST else ():
        found += _folders(folder, depth + 1)
    return found


def _number(folder: str, name: str) -> int | None:
    try:
        return int((read_bytes(os.path.join(folder, name)) or b"").strip())
    except ValueError:
        return None  # "max", or nothing to read


def _table(folder: str, name: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in (read_bytes(os.path.join(folder, name), 1 << 16) or b"").splitlines():
        words = line.split()
        if len(words) == 2 and words[1].isdigit():
            found[words[0].decode("ascii", "replace")] = int(words[1])
    return found
