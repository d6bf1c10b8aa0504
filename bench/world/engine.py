"""The clock: what happens next on the devices, exactly; and the gate, asked at whole seconds when something changed."""

from __future__ import annotations

import heapq
import math
from bisect import insort
from collections.abc import Sequence
from typing import Protocol

from bench.world.outsiders import Visit, speed
from bench.world.runs import EPS, Device, Job, Run
from bench.world.tally import Tally


class Policy(Protocol):
    """What decides: it is asked at whole seconds, and told what happened."""

    name: str
    polls: bool
    """Whether its answer can change from second to second while a run loads or is younger than ``grace`` seconds."""
    grace: float

    def gate(self, world: World) -> None:
        """Start what may start now (``world.start``)."""

    def due(self, world: World) -> float:
        """Return the next whole second at which it has something of its own to look at."""

    def look(self, world: World) -> bool:
        """Look at it; return whether the gate should be asked again."""

    def ended(self, world: World, run: Run, how: str) -> None:
        """Learn from a run that is over: ``how`` is completed, cap, oom or watchdog."""

    def rises(self, world: World, run: Run) -> None:
        """Hear that a run begins to grow, or has just grown."""


class World:
    """Devices, queue and runs at one moment, ``t`` seconds after the start."""

    def __init__(
        self,
        jobs: Sequence[Job],
        policy: Policy,
        devices: int,
        capacity: float,
        *,
        interference: bool = False,
        visits: Sequence[Visit] = (),
        both_die: bool = False,
    ) -> None:
        for job in jobs:
            if job.peak > capacity or job.row.devices > devices:
                wanted = f"{job.peak:.0f} MiB on {job.row.devices} device(s)"
                raise ValueError(
                    f"Job {job.row.id} can never run: {wanted}, there are {devices} of {capacity:.0f} MiB."
                )
        self.jobs = sorted(jobs, key=Job.turn)
        self.policy, self.capacity = policy, capacity
        self.devices = [Device(index, capacity) for index in range(devices)]
        self.interference, self.both_die = interference, both_die
        self.t = 0.0
        self.queue: list[Job] = []
        self.changes = 0  # of the queue
        self.runs: list[Run] = []
        self.tally = Tally(policy.name)
        self._arrivals, self._left = 0, len(self.jobs)
        self._visits, self._visit = list(visits), 0
        self._leaving: list[tuple[float, int, float]] = []
        self._gate = self._due = math.inf

    def start(
        self, job: Job, devices: Sequence[int], charge: float, *, limit: float = math.inf, alone: bool = False
    ) -> Run:
        """Start a job; ``charge`` and ``limit`` (where it is stopped) are MiB on each of its devices."""
        room = min(self.capacity - self.devices[d].measured(self.t) for d in devices)
        run = Run(job, tuple(devices), self.t, charge, limit, alone, job.shape_given(min(charge or room, room, limit)))
        job.first_start = self.t if job.first_start is None else job.first_start
        self.queue.remove(job)
        self.changes += 1
        self.runs.append(run)
        for index in devices:
            self.devices[index].join(run, self.t)
        self._reckon(run.devices)
        if run.rising:
            self.policy.rises(self, run)
        return run

    def stop(self, run: Run, how: str) -> None:
        """Kill a run: its work is lost, and its job goes back to its place in the queue."""
        self.tally.killed(self, run, how)
        job = run.job
        job.most = max(job.most, run.usage(self.t))
        job.kills += 1
        if job.kills > 2000:
            raise RuntimeError(f"{self.policy.name}: job {job.row.id} was killed {job.kills} times.")
        self._drop(run, how)
        insort(self.queue, job, key=Job.turn)
        self.changes += 1

    def play(self) -> Tally:
        """Let everything happen, and return what came of it."""
        self.tally.begin()
        while self._left:
            self._step()
        return self.tally.finish(self)

    # ------------------------------------------------------------------ what happens next
    def _next(self) -> float:
        self._due = self.policy.due(self)
        found = min(self._gate, self._due)
        if self._arrivals < len(self.jobs):
            found = min(found, self.jobs[self._arrivals].row.arrival)
        for run in self.runs:
            if run.due < found:
                found = run.due
        for device in self.devices:
            if device.full_at < found:
                found = device.full_at
        if self._visit < len(self._visits):
            found = min(found, self._visits[self._visit].begin)
        if self._leaving:
            found = min(found, self._leaving[0][0])
        if found == math.inf:
            raise RuntimeError(
                f"{self.policy.name}: nothing happens after {self.t:.0f} s, {len(self.queue)} jobs wait."
            )
        return found

    def _step(self) -> None:
        self.t = max(self.t, self._next())
        self.tally.events += 1
        dirty = self._outsiders()
        dirty |= self._pieces()
        dirty |= self._overflow()
        while self._arrivals < len(self.jobs) and self.jobs[self._arrivals].row.arrival <= self.t + EPS:
            insort(self.queue, self.jobs[self._arrivals], key=Job.turn)
            self._arrivals += 1
            self.changes += 1
            dirty = True
        if self._due <= self.t + EPS and self.policy.look(self):
            self._gate = self.t  # what it has just seen is there to decide on
        if self.t >= self._gate - EPS:
            self._gate = math.inf
            if self.queue:
                self.tally.asked += 1
                self.policy.gate(self)
                dirty |= self.policy.polls and any(map(self._unsure, self.runs))
        if dirty and self.queue and self._gate == math.inf:
            self._gate = self._answers_at()

    def _answers_at(self) -> float:
        """Return when the gate is asked about what happens now: at the next whole second."""
        return math.floor(self.t + EPS) + 1.0

    def _unsure(self, run: Run) -> bool:
        return run.rising or self.t < run.start + self.policy.grace

    def _outsiders(self) -> bool:
        changed = False
        while self._leaving and self._leaving[0][0] <= self.t + EPS:
            _, index, size = heapq.heappop(self._leaving)
            self.devices[index].outside(-size, self.t)
            changed = True
        while self._visit < len(self._visits) and self._visits[self._visit].begin <= self.t + EPS:
            visit = self._visits[self._visit]
            self._visit += 1
            device = self.devices[visit.device]
            if device.measured(self.t) + visit.size > self.capacity:
                self.tally.turned_away += 1
                continue
            device.outside(visit.size, self.t)
            heapq.heappush(self._leaving, (visit.end, visit.device, visit.size))
            for run in device.runs:
                self.policy.rises(self, run)
            changed = True
        return changed

    def _pieces(self) -> bool:
        """Move runs on to their next piece, or to their end."""
        changed = False
        for run in [run for run in self.runs if run.due <= self.t + EPS]:
            if run.gone:
                continue
            if run.over_limit(self.t):
                self.stop(run, "cap")
                changed = True
                continue
            if not run.piece_over(self.t):
                continue
            before = run.usage(self.t)
            if not run.next_piece(self.t):
                self._finish(run)
                changed = True
                continue
            for index in run.devices:
                self.devices[index].busy_changed(self.t)
            after = run.usage(self.t)
            changed |= after < before - EPS
            if after > before + EPS and self._too_much(run):
                changed = True
                continue
            self._touch(run.devices)
            if after > before + EPS or run.rising:
                self.policy.rises(self, run)
        return changed

    def _too_much(self, run: Run) -> bool:
        """Stop a run whose step up passed its limit or a device's capacity."""
        if run.over_limit(self.t):
            self.stop(run, "cap")
            return True
        for index in run.devices:
            if self.devices[index].measured(self.t) > self.capacity + 0.5:
                self._out_of_memory(self.devices[index], run)
                return True
        return False

    def _overflow(self) -> bool:
        """Let whoever grows die where a device has filled up."""
        changed = False
        for device in self.devices:
            while device.full_at <= self.t + EPS:
                used = device.measured(self.t)
                rising = [run for run in device.runs if run.rising]
                if used > self.capacity + 0.5:
                    rising = rising or device.runs
                if used <= self.capacity - 0.5 or not rising:
                    device.reckon(self.t)
                    if device.full_at <= self.t + EPS:
                        device.full_at = self.t + 1e-3
                    break
                self._out_of_memory(device, max(rising, key=lambda run: run.start))
                changed = True
        return changed

    def _out_of_memory(self, device: Device, run: Run) -> None:
        others = [other for other in device.runs if other is not run]
        self.stop(run, "oom")
        if self.both_die and others:
            self.stop(max(others, key=lambda other: other.usage(self.t)), "oom")

    def _finish(self, run: Run) -> None:
        run.job.ended = self.t
        self._left -= 1
        self.tally.completed(run)
        self._drop(run, "completed")

    def _drop(self, run: Run, how: str) -> None:
        run.close(self.t)
        self.runs.remove(run)
        for index in run.devices:
            self.devices[index].leave(run, self.t)
        self.policy.ended(self, run, how)
        self._reckon(run.devices)

    def _reckon(self, indices: Sequence[int]) -> None:
        """Set speeds after a run came or went, and when things are due."""
        if self.interference:
            busy = [sum(run.job.row.util for run in device.runs) for device in self.devices]
            for run in {id(run): run for index in indices for run in self.devices[index].runs}.values():
                shared = [busy[index] for index in run.devices if len(self.devices[index].runs) > 1]
                run.go(self.t, min(map(speed, shared), default=1.0))
                self._touch(run.devices)
        self._touch(indices)

    def _touch(self, indices: Sequence[int]) -> None:
        for index in indices:
            self.devices[index].reckon(self.t)
