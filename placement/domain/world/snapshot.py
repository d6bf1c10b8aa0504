"""Everything that one cycle sees: frozen, complete, every node's reading in it, bytes and seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from calibration.domain.estimate import Estimate
from calibration.domain.samples import PoolState
from placement.domain.containing import containers
from placement.domain.knobs import Knobs
from placement.domain.world.conditions import Conditions
from placement.domain.world.known_asks import Known, Pending
from placement.domain.world.requests import Exclusive, Request


@dataclass(frozen=True, slots=True)
class Hold:
    """A person's stop on the queue, a node, a device or a job. Unix seconds; ``until`` None means until released."""

    who: str
    since: float
    until: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Pool:
    """One body of memory as the gate sees it.

    ``total`` is what the machine has, ``declared`` what an admin allows leases to take of it. ``free`` is the
    measured free figure to decide on (the lower one while memory of an ended job still drains). ``age`` is seconds
    since the last good reading, None when there never was one. ``external_who`` as in samples.Attribution.
    """

    node: str
    pool: str
    kind: str
    name: str
    declared: int
    total: int | None
    free: int | None
    used: int | None
    state: PoolState = PoolState.OK
    age: float | None = 0.0
    message: str = ""
    reserved: int | None = None
    external: int | None = 0
    external_who: tuple[tuple[int, str, str, int | None], ...] = ()
    unexplained: int | None = 0
    draining: bool = False  # memory of a run that ended is still coming back


@dataclass(frozen=True, slots=True)
class Device:
    """A declared runtime device; ``measurable`` False means that no probe can ever read it.

    One without memory of its own has its node's RAM as ``pool``, and what was read of itself in ``own``. ``any_gpu``:
    whoever asks for any GPU may be put on it, though nobody measures it. ``twice`` is the sentence of one by hand with
    whose driver's number a probe found another: jobs on both would be on one card.
    """

    uuid: str
    node: str
    name: str
    index: int
    pool: Pool
    kind: str = "GPU"
    backend: str = "CUDA"
    exclusive_only: bool = False
    hold: Hold | None = None
    draining: bool = False
    measurable: bool = True
    own: Pool | None = None
    more_backends: tuple[str, ...] = ()
    any_gpu: bool = False
    twice: str = ""

    @property
    def backends(self) -> tuple[str, ...]:
        """Return the words of all interfaces that it offers."""
        return (self.backend, *self.more_backends)

    @property
    def open(self) -> bool:
        """Return whether a request that names no device, kind or backend means it, too: what is measured, and by word.

        Nobody who just asks for a GPU is put on another kind of device, or on one without readings, by surprise.
        """
        return self.measurable or (self.any_gpu and self.kind == "GPU")

    def for_container(self, engine: str) -> bool:
        """Return whether what asks for this engine ("" for none) can be given the device.

        NVIDIA's alone are, by the names that their driver has for them: none of those that nobody reads.
        """
        return not engine or containers.given(self.backend, self.measurable)

    @property
    def shown(self) -> str:
        """Return the name by which people know it."""
        return (self.own or self.pool).name


@dataclass(frozen=True, slots=True)
class Node:
    """A machine with a worker. Ages in seconds by the database's clock."""

    name: str
    ram: Pool
    devices: tuple[Device, ...] = ()
    state: str = "ready"  # joining, ready, stale, draining, gone
    hold: Hold | None = None
    tick_age: float | None = 0.0  # since a tick last finished
    work_age: float | None = 0.0  # since the start worker last took a message it was sent (None: never sent one)
    ram_pressure: bool = False  # latched: entered above the high mark, left below the low one
    ram_marks: tuple[float, float] | None = None  # its own high and low mark, shares; None: the knobs'
    disk_free: int | None = None  # bytes where run directories live
    processes_free: int | None = None  # how many processes may still be made
    simulated: bool = False
    watch_policy: str = ""  # as domain.watch_policy has it, "" for the knob's
    engines: tuple[str, ...] | None = None  # that run containers there; None: nobody has looked yet
    engines_why: str = ""  # why there is none

    def runs(self, engine: str) -> bool:
        """Return whether it can run what asks for this engine, as Request has it; it may where nobody looked yet."""
        if not engine or self.engines is None:
            return True
        return bool(self.engines) if engine == "any" else engine in self.engines


@dataclass(frozen=True, slots=True)
class Charge:
    """What one job holds of one pool. ``used`` None means not measured (yet).

    A ``promise`` was asked for to the byte and never follows what is used; ``held`` is more where more is used.
    """

    granted: int
    held: int
    used: int | None
    at_start: int
    settled: bool = False
    promise: bool = False
    cap: int | None = None  # for the evidence of a stop
    promised: int = 0  # of it the bytes that were granted while the job ran, whole until they are let go

    @property
    def growth(self) -> int:
        """Return the bytes that this holder is still expected to take."""
        return max(0, self.held - (self.used or 0))


@dataclass(frozen=True, slots=True)
class Running:
    """An admitted or running job. ``charges`` is keyed by pool id of its node; ``devices`` are UUIDs, as granted."""

    job: int
    name: str
    user: str
    node: str
    charges: Mapping[str, Charge]
    devices: tuple[str, ...] = ()
    basis: str = "measured"
    cold: bool = False  # admitted as cold_start and not settled yet: nobody joins its device
    exclusive: Exclusive = Exclusive.NO
    elapsed: float = 0.0
    limit: float | None = None  # wall-clock limit, seconds
    learned: float | None = None  # 90 % quantile of its key, else of its user's last 50
    seen: tuple[float, ...] = ()  # the seconds that quantile was taken from, shortest first
    margins: Mapping[str, int] = field(default_factory=dict)  # per pool id: margin of its rung
    finishing: bool = False
    arrival: int = 0  # as it was queued: tells who of two is younger; 0 means older than all that wait
    priority: int = 0
    array: int = 0  # the array that it belongs to, 0 for none
    watch_policy: str = ""  # its workload's, which only the watchdog asks for
    more: bool = False  # what it holds besides, on another device: asked for while it ran

    @property
    def unheld(self) -> bool:
        """Return whether this is what a job uses without holding any of the device: it may be gone any moment."""
        return self.more and self.exclusive is Exclusive.NO and not any(c.granted for c in self.charges.values())

    @property
    def device(self) -> str | None:
        """Return the first of its devices, None without one."""
        return self.devices[0] if self.devices else None


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """The plan that an older job keeps until it starts: node, devices, absolute second (snapshot clock)."""

    node: str
    devices: tuple[str, ...]
    at: float


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queued job, or what a running one asks for. Order: priority (higher first), then ``arrival`` (growing)."""

    job: int
    name: str
    user: str
    arrival: int
    request: Request
    estimate: Estimate
    priority: int = 0
    waited: float = 0.0  # seconds in the queue
    workers: int = 1
    hold: Hold | None = None
    no_account: str = ""  # the sentence when its user has no Unix account to run as
    limit: float | None = None
    learned: float | None = None
    seen: tuple[float, ...] = ()  # as in Running
    plan: KeptPlan | None = None
    attempt: int = 1
    conditions: Conditions | None = None  # None: it waits for room alone
    inside: int = 0  # the running job that asks for more; ``job`` is then below zero
    later: tuple[Known, ...] = ()  # what runs like it are known to ask for while they run; told where anybody waits so


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One cycle's world. ``at`` is a clock that never steps (seconds), ``wall`` unix seconds for sentences."""

    at: float
    wall: float
    nodes: tuple[Node, ...]
    running: tuple[Running, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    queue_hold: Hold | None = None
    knobs: Knobs = field(default_factory=Knobs)
    gone: Mapping[str, str] = field(
        default_factory=dict
    )  # names by UUID of devices whose declaration an admin took away
    asked: tuple[Pending, ...] = ()  # what running jobs wait for, of several devices too, in the order of their coming

    def charged(self, started: Running) -> Snapshot:
        """Return this snapshot with one more job in it, so that the next decision sees its charge."""
        return replace(
            self,
            running=(*self.running, started),
            waiting=tuple(w for w in self.waiting if w.job != started.job),
        )
