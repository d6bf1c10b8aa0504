"""Days of jobs on a few devices, played by the product's own plan: no clock, no database, whole seconds and GiB.

A run holds what it was charged from its first second to its last. What is predicted may be wrong.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from placement.domain.knobs import Knobs
from placement.domain.planning.bars import Bar
from placement.domain.planning.plan import Plan, plan
from placement.domain.world.durations import changes_at
from placement.domain.world.requests import Exclusive
from placement.domain.world.snapshot import KeptPlan, Running, Snapshot, Waiting
from tests.builders import EXACT, GIB, a_device, a_node, a_running, a_snapshot, a_waiting

STEP = 10.0
"""All times are multiples of this: well apart, seen from the planner's tolerance of a second."""


@dataclass(frozen=True, slots=True)
class Job:
    """One submission. ``need`` GiB of one device, ``lasts`` what it takes, ``learned`` what is predicted (seconds)."""

    id: int
    arrives: float
    need: int
    lasts: float
    learned: float | None
    priority: int = 0
    alone: bool = False

    @property
    def exclusive(self) -> Exclusive:
        """Return what it asks for."""
        return Exclusive.DEVICE if self.alone else Exclusive.NO


@dataclass(frozen=True, slots=True)
class Day:
    """Jobs in order of arrival, and what they run on."""

    jobs: tuple[Job, ...]
    devices: int
    capacity: int = 24

    def raised(self, job: int, by: int) -> Day:
        """Return the same day with one job's priority raised from the start."""
        return replace(
            self, jobs=tuple(replace(one, priority=one.priority + by) if one.id == job else one for one in self.jobs)
        )


def a_day(seed: int, *, wrong: float = 1.0, most: int = 40) -> Day:
    """Return a day that is drawn from the seed; predictions are up to ``wrong`` times too long or too short.

    Somewhat more comes than the devices can do, so that a queue builds up.
    """
    rng = random.Random(f"day {seed}")
    devices = rng.randint(2, 4)
    load = rng.uniform(0.7, 1.6)
    at, jobs = 0.0, []
    for number in range(1, rng.randint(20, most) + 1):
        need = rng.choice((1, 2, 3, 4, 6, 8, 8, 12, 16, 20, 24))
        lasts = STEP * max(1, round(rng.lognormvariate(3, 1)))
        factor = math.exp(rng.uniform(-1, 1) * math.log(wrong))
        learned = None if wrong > 1 and rng.random() < 0.1 else STEP * max(1, round(lasts * factor / STEP))
        jobs.append(Job(number, at, need, lasts, learned, rng.choice((0, 0, 0, 0, 1, 2)), rng.random() < 0.05))
        # On average a job takes a third of a device for 330 s.
        at += STEP * round(rng.expovariate(1.0) * 11 / (load * devices))
    return Day(tuple(jobs), devices)


def a_crowded_day(seed: int, *, wrong: float = 1.0) -> Day:
    """Return a day on which small jobs keep coming, more than two devices can do, and a few want a whole one."""
    rng = random.Random(f"crowd {seed}")
    at, jobs = 0.0, []
    for number in range(1, 31):
        need = 24 if number in (5, 12) else rng.choice((2, 4, 6, 8))
        lasts = STEP * rng.randint(6, 15)
        factor = math.exp(rng.uniform(-1, 1) * math.log(wrong))
        jobs.append(Job(number, at, need, lasts, STEP * max(1, round(lasts * factor / STEP))))
        at += STEP * rng.choice((0, 1, 1, 2))
    return Day(tuple(jobs), 2)


@dataclass(slots=True)
class Cycle:
    """One cycle of a day as it went."""

    at: float
    snapshot: Snapshot
    made: Plan


@dataclass(slots=True)
class Played:
    """When each job started and ended, and on which device."""

    starts: dict[int, float] = field(default_factory=dict)
    ends: dict[int, float] = field(default_factory=dict)
    device: dict[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class World:
    """A day under way."""

    day: Day
    knobs: Knobs = EXACT
    each: Callable[[Cycle], None] | None = None
    t: float = 0.0
    waiting: list[Job] = field(default_factory=list)
    running: dict[int, Job] = field(default_factory=dict)
    kept: dict[int, KeptPlan] = field(default_factory=dict)
    played: Played = field(default_factory=Played)

    def play(self) -> Played:
        """Play the day to its end, with a cycle whenever something happens or a plan's time comes."""
        to_come = list(self.day.jobs)[::-1]
        while to_come or self.waiting or self.running:
            soon = [to_come[-1].arrives] if to_come else []
            soon += [self.played.ends[job] for job in self.running]
            soon += [kept.at for kept in self.kept.values() if kept.at > self.t]
            soon += [at for at in self._overdue() if at > self.t]
            if not soon:
                return self.played  # whoever still waits never starts: the test will say so
            self.t = max(self.t, min(soon))
            while to_come and to_come[-1].arrives <= self.t:
                self.waiting.append(to_come.pop())
            self.running = {job: one for job, one in self.running.items() if self.played.ends[job] > self.t}
            if self.waiting:
                self._cycle()
        return self.played

    def _overdue(self) -> list[float]:
        """Return when running jobs are expected to last longer than before."""
        found = []
        for job, one in self.running.items():
            begun = self.played.starts[job]
            found.append(begun + changes_at(self.t - begun, None, one.learned, self.knobs) + STEP)
        return found

    def _cycle(self) -> None:
        snapshot = self.snapshot()
        made = plan(snapshot)
        if self.each is not None:
            self.each(Cycle(self.t, snapshot, made))
        self.kept = keeping(made.bar, snapshot.at)
        for decision in made.starts:
            grant = decision.grant
            assert grant is not None
            assert grant.device is not None
            job = next(one for one in self.waiting if one.id == decision.job)
            self.waiting.remove(job)
            self.running[job.id] = job
            self.played.starts[job.id] = self.t
            self.played.ends[job.id] = self.t + job.lasts
            self.played.device[job.id] = grant.device

    def snapshot(self) -> Snapshot:
        """Return the world as the service would hand it to the plan."""
        used = [0] * self.day.devices
        for job, one in self.running.items():
            used[int(self.played.device[job].removeprefix("GPU-"))] += one.need
        total = self.day.capacity * GIB
        devices = (a_device(total, amount * GIB, index=index) for index, amount in enumerate(used))
        return a_snapshot(
            a_node(*devices),
            running=tuple(self._running(one) for one in self.running.values()),
            waiting=tuple(self._waiting(one) for one in self.waiting),
            knobs=self.knobs,
            at=self.t,
        )

    def _running(self, one: Job) -> Running:
        return a_running(
            *(one.id, one.need * GIB, one.need * GIB),
            device=int(self.played.device[one.id].removeprefix("GPU-")),
            elapsed=self.t - self.played.starts[one.id],
            learned=one.learned,
            exclusive=one.exclusive,
            arrival=one.id,
            priority=one.priority,
        )

    def _waiting(self, one: Job) -> Waiting:
        return a_waiting(
            one.id,
            one.need * GIB,
            priority=one.priority,
            learned=one.learned,
            exclusive=one.exclusive,
            waited=self.t - one.arrives,
            plan=self.kept.get(one.id),
        )


def keeping(bar: Bar | None, now: float) -> dict[int, KeptPlan]:
    """Return what is kept of a cycle's plan until the next."""
    if bar is None:
        return {}
    planned = bar.planned(now)
    assert planned.at is not None
    return {bar.job: KeptPlan(planned.node, planned.devices, planned.at)}


def play(day: Day, each: Callable[[Cycle], None] | None = None, knobs: Knobs | None = None) -> Played:
    """Play a day and return how it went; ``each`` is shown every cycle."""
    return World(day, knobs or EXACT, each).play()


def with_starts(cycle: Cycle) -> Snapshot:
    """Return the same second as it is when everybody who was let start holds what was granted; nothing is kept."""
    snapshot = cycle.snapshot
    jobs = {waiting.job: waiting for waiting in snapshot.waiting}
    runs, more = list(snapshot.running), [0] * len(snapshot.nodes[0].devices)
    for decision in cycle.made.starts:
        grant, waiting = decision.grant, jobs.pop(decision.job)
        assert grant is not None
        assert grant.device is not None
        index, need = int(grant.device.removeprefix("GPU-")), grant.charges[grant.device]
        more[index] += need
        runs.append(
            a_running(
                *(waiting.job, need, need),
                device=index,
                learned=waiting.learned,
                exclusive=waiting.request.exclusive,
                arrival=waiting.arrival,
                priority=waiting.priority,
            )
        )
    devices = [
        a_device(device.pool.total, (device.pool.used or 0) + more[index], index=index)
        for index, device in enumerate(snapshot.nodes[0].devices)
    ]
    waiting_still = tuple(replace(waiting, plan=None) for waiting in jobs.values())
    return replace(snapshot, nodes=(a_node(*devices),), running=tuple(runs), waiting=waiting_still)
