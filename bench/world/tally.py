"""What came of a replay, per policy: times in seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench.world.engine import World
    from bench.world.runs import Run


@dataclass(slots=True)
class Tally:
    """Counts and sums. A kill by lack of memory is somebody's: ``own`` (the dead job held more than it was charged),
    ``neighbour`` (another did), ``outsider`` (memory of nobody here came after it), ``gate`` (nobody: too much was let
    in)."""

    policy: str
    makespan: float = 0.0
    mean_wait: float = 0.0
    p95_wait: float = 0.0
    longest_wait: float = 0.0
    mean_jct: float = 0.0
    ooms: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("own", "neighbour", "outsider", "gate"), 0))
    cap_kills: int = 0
    watchdog_kills: int = 0
    lost_gpu_hours: float = 0.0
    memory_use: float = 0.0
    events: int = 0
    asked: int = 0
    turned_away: int = 0
    cpu: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def oom_kills(self) -> int:
        """Return all kills by lack of memory."""
        return sum(self.ooms.values())

    def begin(self) -> None:
        """Start the clock of what the replay itself costs."""
        self.cpu = -time.process_time()

    def killed(self, world: World, run: Run, how: str) -> None:
        """Count a run that was stopped."""
        self.lost_gpu_hours += (world.t - run.start) * len(run.devices) / 3600
        if how == "cap":
            self.cap_kills += 1
        elif how == "watchdog":
            self.watchdog_kills += 1
        else:
            self.ooms[whose(world, run)] += 1

    def completed(self, run: Run) -> None:
        """Count a run that reached its end."""

    def finish(self, world: World) -> Tally:
        """Work out the means."""
        jobs = world.jobs
        first = min(job.row.arrival for job in jobs)
        waits = sorted((job.first_start or 0.0) - job.row.arrival for job in jobs)
        ends = [job.ended or 0.0 for job in jobs]
        self.makespan = max(ends) - first
        self.mean_jct = sum(end - job.row.arrival for end, job in zip(ends, jobs, strict=True)) / len(jobs)
        self.mean_wait, self.longest_wait = sum(waits) / len(waits), waits[-1]
        self.p95_wait = waits[int(0.95 * (len(waits) - 1))]
        whole = len(world.devices) * world.capacity * self.makespan
        self.memory_use = sum(job.area for job in jobs) / whole
        self.cpu += time.process_time()
        return self


def whose(world: World, run: Run) -> str:
    """Return whose doing it is that a run found no memory left."""
    t = world.t
    if run.usage(t) > run.charge + 1:
        return "own"
    for index in run.devices:
        device = world.devices[index]
        if any(other is not run and other.usage(t) > other.charge + 1 for other in device.runs):
            return "neighbour"
        if device.others > 0 and device.others_since > run.start:
            return "outsider"
    return "gate"
