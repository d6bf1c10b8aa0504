"""Who a process is: pid, start time in clock ticks since boot, and the boot."""

from __future__ import annotations

import os
from typing import NamedTuple

_GONE_STATES = "ZXx"


class Identity(NamedTuple):
    """Names one process for ever: a pid alone is used again by strangers."""

    pid: int
    start_ticks: int
    boot_id: str


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that tell who a process is and where it stands."""

    pid: int
    name: str
    state: str
    ppid: int
    pgid: int
    sid: int
    start_ticks: int

    @property
    def gone(self) -> bool:
        """True for a zombie: it holds a pid and nothing else."""
        return self.state in _GONE_STATES


def parse_stat(raw: bytes) -> Stat:
    """Return the fields of one stat line; ValueError where it is none.

    The name may hold spaces and brackets, so the fields are counted from the last closing one.
    """
    opening = raw.find(b"(")
    closing = raw.rfind(b")")
    if opening < 0 or closing < opening:
        raise ValueError(f"not a stat line: {raw[:80]!r}")
    rest = raw[closing + 1 :].split()
    if len(rest) < 20:
        raise ValueError(f"a stat line with {len(rest)} fields after the name, 20 are needed")
    return Stat(
        pid=int(raw[:opening]),
        name=raw[opening + 1 : closing].decode("utf-8", "replace"),
        state=rest[0].decode("ascii", "replace"),
        ppid=int(rest[1]),
        pgid=int(rest[2]),
        sid=int(rest[3]),
        start_ticks=int(rest[19]),
    )


def read_bytes(path: str, limit: int = 65536) -> bytes | None:
    """Return up to `limit` bytes of a small kernel file, None where it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, limit)
    except OSError:
        return None
    finally:
        os.close(descriptor)


def read_stat(pid: int) -> Stat | None:
    """Return what the kernel says of this pid now, None where there is no such process."""
    raw = read_bytes(f"/proc/{pid}/stat")
    if not raw:
        return None
    try:
        return parse_stat(raw)
    except ValueError:
        return None


def read_boot_id() -> str:
    """Return the id of this boot; the empty string where the kernel gives none."""
    return (read_bytes("/proc/sys/kernel/random/boot_id") or b"").decode("ascii", "replace").strip()


def identify(pid: int, boot_id: str | None = None) -> Identity | None:
    """Return the identity of the process that holds this pid now (a zombie still does)."""
    stat = read_stat(pid)
    if stat is None:
        return None
    return Identity(pid, stat.start_ticks, read_boot_id() if boot_id is None else boot_id)


def holder(identity: Identity) -> Stat | None:
    """Return the process with this very identity, a zombie included; None where it is another or gone."""
    if identity.pid <= 0 or identity.boot_id != read_boot_id():
        return None
    stat = read_stat(identity.pid)
    if stat is None or stat.start_ticks != identity.start_ticks:
        return None
    return stat


def alive(identity: Identity) -> bool:
    """True while this very process runs; a zombie does not."""
    stat = holder(identity)
    return stat is not None and not stat.gone
