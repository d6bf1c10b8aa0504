"""Policies to compare with: a few published rules and clairvoyant ones, in their own small code."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.world.engine import World
from bench.world.runs import Device, Job, Run
from bench.world.shadow import Shadow, shadow_of

Order = Callable[[Job], float]
SHUT = -1.0
"""Room of a device that takes nobody."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a job is taken to need, MiB per device. ``alone``: a device without other jobs, and nobody joins."""

    size: float
    alone: bool = False
    empty: bool = False  # only where nobody runs, though others may join


@dataclass(slots=True)
class Rule:
    """One policy. ``needs`` tells a job's need, ``room`` what a device has left; ``order`` is who comes first:

    "fifo" (nobody passes the head), "skip" (who fits goes), "easy" (who fits goes if the head's earliest start stays),
    or a function by which the queue is sorted, smallest first. ``true`` lengths are known to clairvoyants only.
    """

    name: str
    needs: Callable[[Rule, World, Job], Need | None]
    room: Callable[[Rule, World, Device], float]
    order: str | Order = "skip"
    true: bool = False
    polls: bool = False
    roomiest: bool = False
    counts: bool = False  # rooms are counted from charges, not measured
    grace: float = 0.0
    margin: float = 0.0
    peaks: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    lasted: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    _hopeless: tuple[int, float] = (-1, 0.0)  # as the queue was then, this was the least that anybody needed
    doubt: Callable[[Job], float] = lambda job: 1.0

    def due(self, world: World) -> float:
        """Return that nothing happens by itself."""
        return math.inf

    def look(self, world: World) -> bool:
        """Return that there is nothing to look at."""
        return False

    def rises(self, world: World, run: Run) -> None:
        """Ignore it: rooms are read when the gate is asked."""

    def ended(self, world: World, run: Run, how: str) -> None:
        """Remember what a completed run took."""
        if how == "completed":
            self.peaks[run.job.row.key].append(run.job.peak)
            self.lasted[run.job.row.key].append(world.t - run.start)

    def gate(self, world: World) -> None:
        """Go through the queue once."""
        rooms = [self.room(self, world, device) for device in world.devices]
        if self._hopeless[0] == world.changes and max(rooms) < self._hopeless[1] and all(d.runs for d in world.devices):
            return
        least = math.inf
        too_big: dict[tuple[int, bool, bool], float] = {}
        shadow: Shadow | None = None
        for job in self._queue(world):
            need = self.needs(self, world, job)
            if need is None:
                if self.order == "fifo":
                    return
                continue
            kind = (job.row.devices, need.alone, need.empty)
            least = least if need.alone or need.empty else min(least, need.size)
            chosen: list[int] = []
            if need.size < too_big.get(kind, math.inf):
                chosen = self._choose(world, job, need, rooms)
                if chosen and shadow is not None and not self._harmless(world, job, need, chosen, shadow):
                    chosen = []
                elif not chosen and shadow is None:
                    too_big[kind] = need.size
            if chosen:
                world.start(job, chosen, need.size, alone=need.alone)
                for index in chosen:
                    rooms[index] = self.room(self, world, world.devices[index])
            elif self.order == "fifo":
                return
            elif self.order == "easy" and shadow is None:
                shadow = shadow_of(world, need.size, need.alone, job.row.devices, rooms, self.remaining)
        if self.polls:
            self._hopeless = (world.changes, least)

    def _queue(self, world: World) -> list[Job]:
        return sorted(world.queue, key=self.order) if callable(self.order) else list(world.queue)

    def _choose(self, world: World, job: Job, need: Need, rooms: Sequence[float]) -> list[int]:
        """Return the devices to take: the fullest that still fit, or the emptiest where the rule says so."""
        fits = []
        for device, room in zip(world.devices, rooms, strict=True):
            if need.alone or need.empty:
                least = max(0.6 * device.capacity, min(1.05 * job.most, 0.95 * device.capacity))
                good = not device.runs and (self.counts or room >= least)
            else:
                good = room >= max(0.0, need.size)
            if good:
                fits.append((-room if self.roomiest else room, -device.index if self.roomiest else device.index))
        if len(fits) < job.row.devices:
            return []
        return [abs(index) for _, index in sorted(fits)[: job.row.devices]]

    def remaining(self, world: World, run: Run) -> float:
        """Return what a run is expected to still take: the truth, or the mean of its key; overdue, a fifth of that."""
        if self.true:
            return run.left(world.t)
        seen = self.lasted.get(run.job.row.key)
        mean = (sum(seen) / len(seen) if seen else 3600.0) * self.doubt(run.job)
        left = mean - (world.t - run.start)
        return left if left > 0 else 0.2 * mean

    def _harmless(self, world: World, job: Job, need: Need, chosen: Sequence[int], shadow: Shadow) -> bool:
        seen = self.lasted.get(job.row.key)
        lasts = job.solo if self.true else max(seen) * self.doubt(job) if seen else math.inf
        return all(shadow.spares(index, need.size, world.t + lasts) for index in chosen)


def reserved(rule: Rule, world: World, device: Device) -> float:
    """Return the measured room, less what running jobs may still take of their charges."""
    if any(run.alone for run in device.runs):
        return SHUT
    return device.capacity - device.others - sum(max(run.charge, run.usage(world.t)) for run in device.runs)


def counted(rule: Rule, world: World, device: Device) -> float:
    """Return what charges leave; nobody looks at the device."""
    if any(run.alone for run in device.runs):
        return SHUT
    return device.capacity - sum(run.charge for run in device.runs)


def whole(rule: Rule, world: World, device: Device) -> float:
    """Return the whole device, or nothing."""
    return SHUT if device.runs else device.capacity - device.others


def free_now(rule: Rule, world: World, device: Device) -> float:
    """Return what is free at this moment; with a grace, nothing so long after a start."""
    if any(run.alone for run in device.runs):
        return SHUT
    if rule.grace and any(world.t < run.start + rule.grace for run in device.runs):
        return SHUT
    return device.capacity - device.measured(world.t)
