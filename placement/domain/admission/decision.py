"""A decision is data: a verdict, every check with its figures, and the objection that leads."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

Figures = Mapping[str, int | float | str | None]


class Verdict(enum.StrEnum):
    START = "start"
    WAIT = "wait"


class Code(enum.StrEnum):
    """Why not, in the order in which the gate asks; the order is the table's and decides who leads."""

    INFEASIBLE = "infeasible"
    HELD = "held"
    DRAINING = "draining"
    NODE_STALE = "node_stale"
    NODE_NO_WORK = "node_no_work"
    DISK_LOW = "disk_low"
    PROCESS_LIMIT = "process_limit"
    JOB_HELD = "job_held"
    NO_ACCOUNT = "no_account"
    DEPENDS = "depends"
    NOT_BEFORE = "not_before"
    ARRAY_LIMIT = "array_limit"
    QUOTA = "quota"
    NO_READING = "no_reading"
    STALE_READING = "stale_reading"
    DEVICE_LOST = "device_lost"
    RAM_PRESSURE = "ram_pressure"
    EXCLUSIVE_JOB = "exclusive_job"
    EXCLUSIVE_DEVICE = "exclusive_device"
    COLD_START = "cold_start"
    COLD_START_ROOM = "cold_start_room"
    BOOKED = "booked"
    NO_ROOM = "no_room"
    PLACEMENT_PRESSURE = "placement_pressure"
    SET_ASIDE = "set_aside"

    @property
    def rank(self) -> int:
        """Return the place in the table, 0 first."""
        return _RANKS[self]


_RANKS = {code: place for place, code in enumerate(Code)}


@dataclass(frozen=True, slots=True)
class Check:
    """One question of the gate with its answer. ``figures`` in bytes and seconds; keys are stable API names."""

    code: Code
    ok: bool
    sentence: str
    figures: Figures = field(default_factory=dict)
    pool: str = ""  # pool id, "" when the question is not about one pool
    shortfall: int = 0  # bytes missing, 0 when the answer is not about bytes


@dataclass(frozen=True, slots=True)
class Candidate:
    """One place that could serve: a node, and devices or none. ``checks`` in table order, passed ones too."""

    node: str
    devices: tuple[str, ...]
    label: str  # "gpu1", "gpu0 + gpu2", "RAM of atlas"
    checks: tuple[Check, ...] = ()
    room: Mapping[str, int | None] = field(default_factory=dict)  # per pool id
    need: Mapping[str, int] = field(default_factory=dict)  # per pool id

    @property
    def device(self) -> str | None:
        """Return the first device, None without one."""
        return self.devices[0] if self.devices else None

    @property
    def objections(self) -> tuple[Check, ...]:
        """Return the checks that said no."""
        return tuple(c for c in self.checks if not c.ok)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a start is given: devices, charge, cap and margin per pool id, and the rung it stands on."""

    node: str
    devices: tuple[str, ...]
    charges: Mapping[str, int]
    caps: Mapping[str, int]
    margins: Mapping[str, int]
    basis: str

    @property
    def device(self) -> str | None:
        """Return the first device, None without one."""
        return self.devices[0] if self.devices else None


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """When and where a waiting job is expected to start. ``at`` is on the snapshot's clock; None: cannot be told.

    ``in_s`` seconds from the snapshot by which half of such starts come, ``late_s`` by which nine of ten do (None:
    not told); ``sure`` one of "limit", "learned", "guess"; ``why_none`` names the blocker without an end.
    """

    node: str
    devices: tuple[str, ...]
    at: float | None
    in_s: float | None
    sure: str = "guess"
    waits_for: tuple[int, ...] = ()  # jobs that have to end
    why_none: str = ""
    keeps: bool = False  # this is the plan that nothing younger may delay
    late_s: float | None = None

    @property
    def device(self) -> str | None:
        """Return the first device, None without one."""
        return self.devices[0] if self.devices else None


@dataclass(frozen=True, slots=True)
class Decision:
    """What the gate says of one job in one cycle."""

    job: int
    verdict: Verdict
    headline: str  # one sentence, words and figures
    code: Code | None = None  # of the leading objection
    whole: tuple[Check, ...] = ()  # about the job, the queue or every place
    candidates: tuple[Candidate, ...] = ()  # the leading one first
    grant: Grant | None = None
    planned: PlannedStart | None = None
