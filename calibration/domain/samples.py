"""What one look at one node gives: frozen values, bytes, and ages instead of guesses."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

RAM = "ram"
"""Pool id of a node's main memory; a device's pool id is the device's UUID."""
PASSING = "the next second"
"""What stands in a note of one look that the next look may not repeat."""


class PoolState(enum.StrEnum):
    """Whether a pool can be read, and if not, which of the different reasons holds."""

    OK = "ok"
    NOT_READY = "not_ready"  # the driver is not up yet: asked again with back-off
    UNREADABLE = "unreadable"  # was there, answers errors now
    LOST = "lost"  # a known device that no longer answers or is no longer listed
    GONE = "gone"  # an instance that was removed from its device: it does not come back
    HEADING = "heading"  # a device whose instances are the devices: nothing is placed on it itself
    UNMEASURED = "unmeasured"  # answers, but not how much memory it has
    UNSUPPORTED = "unsupported"  # no probe can ever read it (booked ledger alone)
    STALE = "stale"  # the last good figures are older than allowed


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """A process that cannot be confused with a later one of the same number.

    ``start_ticks`` is field 22 of /proc/PID/stat (clock ticks since boot).
    """

    boot_id: str
    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """One process at one instant. Bytes; None where it could not be read.

    ``ram`` is what the process needs (proportional size without clean file pages where that was read;
    ``ram_exact`` False means RSS or an extrapolation from it). ``cached`` are clean file-backed pages.
    ``vram`` maps device UUID to bytes, or to None where the driver names the process but not its size.
    """

    pid: int
    ppid: int
    start_ticks: int
    state: str = "S"
    pgid: int = 0
    session: int = 0
    uid: int | None = None
    user: str | None = None
    name: str = ""
    ram: int | None = None
    ram_exact: bool = False
    rss: int | None = None
    cached: int | None = None
    cgroup: str = ""  # path of its control group, "" where it is in none or that cannot be read
    vram: Mapping[str, int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PoolSample:
    """One pool at one instant.

    ``total`` and ``free`` are what the machine (or its cgroup) has; ``used`` excludes ``reserved``
    (driver-held) where the driver tells. ``read_at`` is the monotonic second of the last good reading, None when
    there never was one. ``processes`` are (pid, bytes or None) as the driver lists them, each pid once.
    ``busy`` is the share of time in which kernels ran (0..1), None where unknown; ``process_busy`` is the same
    per pid, only for the pids that the driver told it for. ``since`` is the unix second at which the present
    state began for a device that was readable before, None otherwise. ``parent`` is the device that an instance is a
    part of. ``shares`` says that the device has no memory of its own: total and free are those of main memory, and
    ``used`` is what its processes hold of it. ``files`` are bytes of main memory in files that live there (/dev/shm).
    """

    pool: str
    kind: str  # "ram" or "vram"
    name: str  # "RAM", "gpu0"
    state: PoolState
    total: int | None = None
    free: int | None = None
    used: int | None = None
    reserved: int | None = None
    read_at: float | None = None
    message: str = ""
    index: int | None = None
    model: str = ""
    backend: str = ""
    simulated: bool = False
    busy: float | None = None
    processes: tuple[tuple[int, int | None], ...] = ()
    process_busy: tuple[tuple[int, float], ...] = ()
    since: float | None = None
    parent: str = ""
    shares: bool = False
    files: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """One frozen look at one node. ``at`` is monotonic seconds, ``wall`` unix seconds."""

    node: str
    boot_id: str
    at: float
    wall: float
    pools: Mapping[str, PoolSample]
    processes: Mapping[int, ProcessSample]
    notes: tuple[str, ...] = ()
    capacity_note: str = ""  # which limit made the RAM total: "host" or the cgroup's path
    cost_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Claim:
    """What the scheduler knows of one owner's processes; ``owner`` is opaque here ("job:7").

    ``supervisor`` is the runner (its own memory is not the owner's), ``roots`` the recorded leaders; ``marker`` is
    what their environment says whose they are; ``known`` every identity attributed before (sticky). ``group`` is the
    end of the path of its control group ("tidegate-1a2b3c-7-1"), ``group_ram`` the bytes that the kernel counts there.
    """

    owner: str
    supervisor: Identity | None = None
    roots: tuple[Identity, ...] = ()
    marker: str = ""
    sessions: tuple[int, ...] = ()
    known: frozenset[Identity] = frozenset()
    group: str = ""
    group_ram: int | None = None


@dataclass(frozen=True, slots=True)
class Attribution:
    """Bytes per owner per pool. A None amount is unknown, never zero.

    ``owners[owner][pool]`` holds every claimed owner (an owner without processes has 0 in RAM and in each pool read).
    ``rules[pid]`` is (owner, rule) for attributed processes; ``external[pool]`` known bytes of nobody of ours;
    ``external_who[pool]`` the largest outsiders as (pid, user, name, bytes|None), largest first, at most five;
    ``unexplained[pool]`` = used minus all that processes explain, None when a process size is unknown.
    ``members[owner]`` are the identities seen alive now. ``amounts[pool]`` has bytes per pid for each pool that was
    read. ``disputes[pid]`` is (owner by control group, owner by parents) where the two differ: the group stands.
    """

    owners: Mapping[str, Mapping[str, int | None]]
    members: Mapping[str, frozenset[Identity]]
    rules: Mapping[int, tuple[str, str]]
    external: Mapping[str, int | None]
    external_who: Mapping[str, tuple[tuple[int, str, str, int | None], ...]]
    unexplained: Mapping[str, int | None]
    exact: Mapping[str, bool] = field(default_factory=dict)  # per owner: RAM from PSS
    cached: Mapping[str, int] = field(default_factory=dict)  # per owner: clean file pages, shown apart
    amounts: Mapping[str, Mapping[int, int | None]] = field(default_factory=dict, repr=False)
    disputes: Mapping[int, tuple[str, str]] = field(default_factory=dict)
