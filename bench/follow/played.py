"""The replay's side: the same rows at the same speed, with what a real start takes where that is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bench.follow.figures import Course, Done
from bench.world.engine import World
from bench.world.product import Product
from bench.world.runs import Job, Run
from bench.world.setting import knobs
from bench.world.shapes import Piece, Shape, shape_of
from bench.world.submissions import Submission

PHASES = 16


def faster(rows: Sequence[Submission], speed: float) -> list[Submission]:
    """Return the rows as they are at so many times the speed."""
    return [
        replace(row, arrival=row.arrival / speed, duration=row.duration / speed, load=row.load / speed) for row in rows
    ]


def shape(row: Submission) -> Shape:
    """Return what the memory of a row's run does, at the speed that the row has."""
    return shape_of(row, "trace", 0)


def late(given: Shape, seconds: float) -> Shape:
    """Return a shape that holds nothing until its process is there."""
    if seconds <= 0:
        return given
    moved = (replace(piece, begin=piece.begin + seconds, end=piece.end + seconds) for piece in given.pieces)
    return replace(given, pieces=(Piece(0.0, seconds, 0.0, 0.0, 0.0), *moved))


class Prompt(World):
    """A world whose gate answers so many seconds after an event, 0: at the next whole second.

    A job that died comes back as a new submission at the end of the queue, as the service runs it again.
    """

    reaction = 0.0
    came_back = 0

    def _answers_at(self) -> float:
        return self.t + self.reaction if self.reaction > 0 else super()._answers_at()

    def stop(self, run: Run, how: str) -> None:
        """Kill a run; its job goes to the end of the queue."""
        job = run.job
        super().stop(run, how)
        self.came_back += 1
        job.row = replace(job.row, id=len(self.jobs) + self.came_back)
        self.queue.remove(job)
        self.queue.append(job)


class Ticking(Product):
    """The product, with looks at whole seconds whenever a run began, and with what it granted to whom."""

    grants: dict[int, list[tuple[int, int, str]]]  # by the identity of a job

    def due(self, world: World) -> float:
        """Return the next whole second with something to look at."""
        for one in self.watched.values():
            if one.look_at < math.inf:
                one.look_at = float(math.ceil(one.look_at - 1e-6))
        return super().due(world)

    def _start(self, world: World, job: Job, *granted: Any) -> None:
        super()._start(world, job, *granted)
        one = self.watched[job.row.id]
        kept = one.charges[one.uuid]
        self.grants.setdefault(id(job), []).append((one.device.index, kept.at_start >> 20, kept.basis.word))


def play(
    rows: Sequence[Submission],
    devices: int,
    cap: float,
    turned: Mapping[str, float],
    *,
    start: float = 0.0,
    reaction: float = 0.0,
    phase: float = 0.0,
    name: str = "replay",
) -> Course:
    """Return what comes of the rows under the product; ``start`` and ``reaction`` in seconds (see Course).

    ``phase``: all rows come so many seconds later, seen from the whole seconds at which the devices are looked at.
    """
    jobs = [Job(replace(row, arrival=row.arrival + phase), late(shape(row), start)) for row in rows]
    came = {id(job): row for job, row in zip(jobs, rows, strict=True)}
    policy = Ticking(*knobs({k: f"{v:g}" for k, v in turned.items()}))
    policy.grants = {}
    world = Prompt(jobs, policy, devices, cap)
    world.reaction = reaction
    tally = world.play()
    done = []
    for job in jobs:
        row = came[id(job)]
        began = None if job.first_start is None else job.first_start + start - phase
        ended = None if job.ended is None else job.ended - phase
        done.append(Done(row.id, row.arrival, began, ended, tuple(policy.grants.get(id(job), ()))))
    kills = {"oom": tally.oom_kills, "cap": tally.cap_kills, "watchdog": tally.watchdog_kills}
    return Course(name, done, kills, start, reaction)


def phases(
    rows: Sequence[Submission],
    devices: int,
    cap: float,
    turned: Mapping[str, float],
    *,
    start: float,
    reaction: float,
    name: str,
) -> list[Course]:
    """Return what comes of the rows at each of 16 phases of the looks, shortest makespan first.

    Nothing but chance decides between them: the service's looks have one of these phases, too.
    """
    found = [
        play(rows, devices, cap, turned, start=start, reaction=reaction, phase=number / PHASES, name=name)
        for number in range(PHASES)
    ]
    return sorted(found, key=lambda course: (course.figures()["makespan s"], course.figures()["mean JCT s"]))
