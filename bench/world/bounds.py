"""What no schedule can beat, however much it knows. Seconds."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

from bench.world.runs import EPS, Job


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lower bounds of the makespan and of the mean time from submission to end."""

    makespan: float
    mean_jct: float


def bounds(jobs: Sequence[Job], devices: int, capacity: float) -> Bounds:
    """Return the bounds: work that comes late has to be done late, a job takes as long as it takes, and memory that
    flows freely to whoever needs least of it serves the mean best."""
    rows = sorted(jobs, key=Job.turn)
    begin, speed = rows[0].row.arrival, devices * capacity
    longest = max(job.row.arrival - begin + job.solo for job in rows)
    area = late = 0.0
    for job in reversed(rows):
        area += job.area
        late = max(late, job.row.arrival - begin + area / speed)
    solo = sum(job.solo for job in rows) / len(rows)
    return Bounds(max(longest, late), max(solo, _fluid(rows, speed)))


def _fluid(rows: Sequence[Job], speed: float) -> float:
    """Return the mean time in which the memory of all devices, one river, serves the least remaining work first."""
    waiting: list[tuple[float, float]] = []
    at, spent, following = 0.0, 0.0, 0
    while following < len(rows) or waiting:
        if not waiting:
            at = max(at, rows[following].row.arrival)
        while following < len(rows) and rows[following].row.arrival <= at + EPS:
            heapq.heappush(waiting, (rows[following].area, rows[following].row.arrival))
            following += 1
        area, arrival = heapq.heappop(waiting)
        until = rows[following].row.arrival if following < len(rows) else math.inf
        if at + area / speed <= until:
            at += area / speed
            spent += at - arrival
        else:
            heapq.heappush(waiting, (area - (until - at) * speed, arrival))
            at = until
    return spent / len(rows)
