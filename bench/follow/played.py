"""The replay's side: the same rows at the same speed, with what a real start takes where that is asked for."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bench.follow.figures import Course, Done
from bench.world.engine import World
from bench.world.product import Product
from bench.world.runs import Job, Run
from bench.world.setting import knobs
from bench.world.shapes import Piece, Shape, shape_of
from bench.world.submissions import Submission


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
    """The product, with looks at whole seconds whenever a run began."""

    def due(self, world: World) -> float:
        """Return the next whole second with something to look at."""
        for one in self.watched.values():
            if one.look_at < math.inf:
                one.look_at = float(math.ceil(one.look_at - 1e-6))
        return super().due(world)


def play(
    rows: Sequence[Submission],
    devices: int,
    cap: float,
    turned: Mapping[str, float],
    *,
    start: float = 0.0,
    reaction: float = 0.0,
    name: str = "replay",
) -> Course:
    """Return what comes of the rows under the product; ``start`` and ``reaction`` in seconds (see Course)."""
    jobs = [Job(row, late(shape(row), start)) for row in rows]
    came = {id(job): row for job, row in zip(jobs, rows, strict=True)}
    world = Prompt(jobs, Ticking(*knobs({k: f"{v:g}" for k, v in turned.items()})), devices, cap)
    world.reaction = reaction
    tally = world.play()
    done = []
    for job in jobs:
        row = came[id(job)]
        began = None if job.first_start is None else job.first_start + start
        done.append(Done(row.id, row.arrival, began, job.ended))
    kills = {"oom": tally.oom_kills, "cap": tally.cap_kills, "watchdog": tally.watchdog_kills}
    return Course(name, done, kills, start, reaction)
