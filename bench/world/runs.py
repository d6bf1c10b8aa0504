"""Jobs, their runs and the devices that they run on, as they really are: sizes in MiB, times in seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from bench.world.busy import Busy
from bench.world.shapes import Piece, Shape, taken
from bench.world.submissions import Submission

EPS = 1e-6


@dataclass(slots=True, eq=False)
class Job:
    """A submission with what became of it. ``most``: the highest level of a run that was killed."""

    row: Submission
    shape: Shape
    first_start: float | None = None
    ended: float | None = None
    kills: int = 0
    most: float = 0.0
    memo: dict[str, Any] = field(default_factory=dict)  # a policy's own

    @property
    def peak(self) -> float:
        """Return the most that it needs."""
        return self.shape.peak

    @property
    def solo(self) -> float:
        """Return the seconds that it takes undisturbed."""
        return self.shape.duration

    @property
    def area(self) -> float:
        """Return MiB-seconds over all its devices, undisturbed."""
        return self.row.devices * self.shape.area

    def turn(self) -> tuple[float, int]:
        """Return its place in the queue."""
        return self.row.arrival, self.row.id

    def shape_given(self, room: float) -> Shape:
        """Return what its memory does when it is given this much."""
        return taken(self.shape, max(room, self.peak)) if self.shape.share is not None else self.shape


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a run held from ``begin`` to ``end`` (wall seconds): straight from ``low`` to ``high`` MiB."""

    begin: float
    end: float
    low: float
    high: float

    def level(self, t: float) -> float:
        """Return MiB held at a second of it."""
        length = self.end - self.begin
        return self.low + (self.high - self.low) * min(1.0, max(0.0, (t - self.begin) / (length or 1.0)))


class Run:
    """One attempt of a job. ``trail`` is what it has held since somebody last looked."""

    __slots__ = (
        "alone", "at", "busy", "charge", "devices", "due", "ends", "extra", "gone", "job", "level", "limit", "pace",
        "piece", "rate", "shape", "start", "synced", "trail", "work",
    )  # fmt: skip

    def __init__(
        self, job: Job, devices: tuple[int, ...], t: float, charge: float, limit: float, alone: bool, shape: Shape
    ) -> None:
        self.job, self.devices, self.start, self.charge = job, devices, t, charge
        self.limit, self.alone, self.shape = limit, alone, shape
        self.rate, self.work, self.synced, self.gone = 1.0, 0.0, t, False
        self.trail: list[Stretch] = []
        self.extra: Any = None
        self.busy = Busy()
        self.at = 0
        self._enter(t)

    def _enter(self, t: float) -> None:
        """Begin the piece at ``at``."""
        piece: Piece = self.shape.pieces[self.at]
        self.piece, self.work, self.synced, self.level = piece, piece.begin, t, piece.low
        self.busy.becomes(piece.busy, t)
        self._due(t)

    def _due(self, t: float) -> None:
        self.pace = self.piece.slope * self.rate
        self.due = self.ends = t + (self.piece.end - self.work) / self.rate
        if self.pace > 0 and self.piece.high > self.limit + 0.5:
            self.due = min(self.due, max(t, t + (self.limit + 1 - self.level) / self.pace))

    @property
    def rising(self) -> bool:
        """Return whether it grows now."""
        return self.pace > 0

    def usage(self, t: float) -> float:
        """Return MiB on each of its devices."""
        return self.level + (t - self.synced) * self.pace

    def over_limit(self, t: float) -> bool:
        """Return whether it has passed where it is to be stopped."""
        return self.usage(t) > self.limit + 0.5

    def left(self, t: float) -> float:
        """Return the seconds that it still takes at its present speed."""
        return (self.shape.duration - self.work) / self.rate - (t - self.synced)

    def piece_over(self, t: float) -> bool:
        """Return whether its piece has ended; else find out again when something is due."""
        if t + EPS >= self.ends:
            return True
        self._sync(t)
        self._due(t)
        return False

    def next_piece(self, t: float) -> bool:
        """Go on to the next piece; False at the end of the run."""
        self._mark(t)
        if self.at + 1 >= len(self.shape.pieces):
            return False
        self.at += 1
        self._enter(t)
        return True

    def go(self, t: float, rate: float) -> None:
        """Run at another speed from now on."""
        if rate == self.rate:
            return
        self._sync(t)
        self.rate = rate
        self._due(t)

    def close(self, t: float) -> None:
        """Be over."""
        if not self.trail or self.trail[-1].end < t:
            self._mark(t)
        self.gone = True

    def _mark(self, t: float) -> None:
        begin = self.trail[-1].end if self.trail and self.trail[-1].end > self.synced else self.synced
        if t > begin:
            self.trail.append(Stretch(begin, t, self.usage(begin), self.usage(t)))

    def _sync(self, t: float) -> None:
        self._mark(t)
        self.level, self.work, self.synced = self.usage(t), self.work + (t - self.synced) * self.rate, t

    def seen(self, t: float) -> list[Stretch]:
        """Return what it held since this was asked last, up to now, and forget it."""
        if not self.gone:
            self._sync(t)
            self.trail.append(Stretch(t, t, self.level, self.level))
        found, self.trail = self.trail, []
        return found


class Device:
    """One device: who runs there, what outsiders hold, when it will be full."""

    __slots__ = ("busy", "capacity", "full_at", "index", "others", "others_since", "runs")

    def __init__(self, index: int, capacity: float) -> None:
        self.index, self.capacity = index, capacity
        self.runs: list[Run] = []
        self.others, self.others_since = 0.0, -math.inf
        self.full_at = math.inf
        self.busy = Busy()

    def measured(self, t: float) -> float:
        """Return MiB in use now, whoever holds them."""
        total = self.others
        for run in self.runs:
            total += run.level + (t - run.synced) * run.pace
        return total

    def join(self, run: Run, t: float) -> None:
        """Take a run in."""
        self.runs.append(run)
        self.busy_changed(t)

    def leave(self, run: Run, t: float) -> None:
        """Let a run go."""
        self.runs.remove(run)
        self.busy_changed(t)

    def outside(self, size: float, t: float) -> None:
        """Let an outsider come, or go (negative)."""
        self.others = max(0.0, self.others + size)
        if size > 0:
            self.others_since = t
        self.reckon(t)

    def reckon(self, t: float) -> None:
        """Work out when the device is full if everybody goes on as now."""
        pace = sum(run.pace for run in self.runs)
        room = self.capacity - self.measured(t)
        if pace > 0:
            self.full_at = t + max(0.0, room) / pace
        else:
            self.full_at = t if room < -0.5 else math.inf

    def busy_changed(self, t: float) -> None:
        """Note how busy the device is from now on: somebody's kernels run unless everybody's rest."""
        rest = 1.0
        for run in self.runs:
            rest *= 1 - min(1.0, run.piece.busy)
        self.busy.becomes(1 - rest, t)
