"""What must hold of any day: younger starts move no plan, a higher priority never hurts, nobody starves."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from placement.domain.planning.bars import rank
from placement.domain.planning.plan import plan
from placement.domain.world.requests import Gpu, Request
from placement.domain.world.snapshot import Snapshot, Waiting
from tests.builders import EXACT
from tests.days import Cycle, a_crowded_day, a_day, play, with_starts

QUICK = 12
"""Days that are always played. They differ in devices, load and, by their number, in kind; the rest is slow."""
CHUNK = 100
"""Days of one slow test."""
WRONG = 3.0
"""How many times too long or too short a prediction is at most, where it is wrong."""
TOLERANCE = 1.0


def seeds(chunks: int, each: int = 1) -> list[Any]:
    """Return ranges of seeds, every ``each``-th: a few that always run, and whole chunks under --all."""
    whole = (range(chunk * CHUNK, (chunk + 1) * CHUNK, each) for chunk in range(chunks))
    return [
        pytest.param(range(QUICK), id="quick"),
        *(pytest.param(chunk, id=f"from_{chunk.start}", marks=pytest.mark.slow) for chunk in whole),
    ]


def turn(waiting: Waiting) -> tuple[int, int, int]:
    return rank(waiting, EXACT.ageing_hours)


class Heads:
    """Since when each job has been the first that waits, with nobody above it coming or starting since."""

    def __init__(self) -> None:
        self.since: dict[int, float] = {}
        self.planned: dict[int, float] = {}
        self.later: list[tuple[int, float, float]] = []  # a plan that moved: job, before, after

    def __call__(self, cycle: Cycle) -> None:
        started = {decision.job for decision in cycle.made.starts}
        turns = {waiting.job: turn(waiting) for waiting in cycle.made.queue}
        left = [waiting.job for waiting in cycle.made.queue if waiting.job not in started]
        for job in [job for job in self.since if job in left]:
            if job != left[0] or any(turns[one] < turns[job] for one in started):
                del self.since[job]
                self.planned.pop(job, None)
        if left:
            self.since.setdefault(left[0], cycle.at)
        bar = cycle.made.bar
        if bar is not None and bar.job in self.since:
            before = self.planned.get(bar.job, bar.at)
            if bar.at > before + TOLERANCE:
                self.later.append((bar.job, before, bar.at))
            self.planned[bar.job] = min(before, bar.at)


@pytest.mark.parametrize("days", seeds(100))
def test_nobody_starves(days: range) -> None:
    for seed in days:
        wrong = WRONG if seed % 2 else 1.0
        day = a_crowded_day(seed, wrong=wrong) if seed % 4 > 1 else a_day(seed, wrong=wrong, most=24)
        heads = Heads()
        played = play(day, heads)
        longest = max(job.lasts for job in day.jobs)

        assert played.starts.keys() == {job.id for job in day.jobs}, f"day {seed}: somebody never started"
        for job, since in heads.since.items():
            waited = played.starts[job] - since
            # Once first in line it waits for those that run, and where predictions are wrong for those that were let
            # pass on a wrong one; from its planned time on nobody passes.
            assert waited <= longest * (1 if wrong == 1.0 else 3), f"day {seed}: #{job} was first for {waited:.0f} s"


@pytest.mark.parametrize("days", seeds(10))
def test_with_exact_durations_a_plan_moves_only_earlier_and_is_kept(days: range) -> None:
    for seed in days:
        heads = Heads()
        played = play(a_day(seed, most=24), heads)

        assert heads.later == [], f"day {seed}"
        for job, at in heads.planned.items():
            # Younger ones may have filled what its plan left over before somebody above it came and needed that.
            if not _passed_by(seed, job, played.starts):
                assert played.starts[job] <= at + TOLERANCE, f"day {seed}: #{job} was planned for {at:.0f}"


def _passed_by(seed: int, job: int, starts: dict[int, float]) -> bool:
    """Return whether somebody of a higher priority came after the job and started before it."""
    jobs = {one.id: one for one in a_day(seed, most=24).jobs}
    return any(
        other.priority > jobs[job].priority and other.id > job and starts[other.id] < starts[job]
        for other in jobs.values()
    )


@pytest.mark.parametrize("wrong", [1.0, WRONG, 10.0])
@pytest.mark.parametrize("days", seeds(5, each=4))
def test_no_younger_start_moves_a_plan_later(days: range, wrong: float) -> None:
    def check(cycle: Cycle) -> None:
        bar = cycle.made.bar
        if bar is None or not cycle.made.starts:
            return
        mine = next(waiting for waiting in cycle.snapshot.waiting if waiting.job == bar.job)
        here = Request(Gpu.ONE, bar.exclusive, device=bar.look.place.uuids[0])

        def bare(snapshot: Snapshot, keep: Callable[[Waiting], bool]) -> Snapshot:
            """Return the snapshot with only such jobs waiting, and the planned one tied to its place."""
            jobs = (replace(one, plan=None) for one in snapshot.waiting if keep(one))
            return replace(
                snapshot, waiting=tuple(replace(one, request=here) if one.job == bar.job else one for one in jobs)
            )

        without = plan(bare(cycle.snapshot, lambda one: turn(one) <= turn(mine))).bar
        if without is None:
            return
        then = plan(bare(with_starts(cycle), lambda one: True))
        if bar.job not in {decision.job for decision in then.starts}:
            assert then.bar is not None, f"#{bar.job} lost its plan at {cycle.at:.0f}"
            assert then.bar.job == bar.job
            assert then.bar.at <= without.at + TOLERANCE, f"#{bar.job} moved at {cycle.at:.0f}"

    for seed in days:
        play(a_day(seed, wrong=wrong, most=24), check)


@pytest.mark.parametrize("days", seeds(10, each=2))
def test_with_exact_durations_a_higher_priority_never_delays(days: range) -> None:
    for seed in days:
        day = a_day(seed, most=24)
        starts = play(day).starts
        waited = [job.id for job in day.jobs if starts[job.id] > job.arrives]
        if waited:
            job = random.Random(seed).choice(waited)
            raised = play(day.raised(job, 3)).starts[job]
            assert raised <= starts[job] + TOLERANCE, f"day {seed}: #{job} started {raised - starts[job]:.0f} s later"


@pytest.mark.parametrize("days", seeds(10))
def test_with_wrong_durations_a_higher_priority_never_moves_the_plan_later(days: range) -> None:
    rng = random.Random(days.start)

    def check(cycle: Cycle) -> None:
        if len(cycle.snapshot.waiting) < 2 or rng.random() < 0.5:
            return
        one = rng.choice(cycle.snapshot.waiting)
        raised = plan(
            replace(
                cycle.snapshot,
                waiting=tuple(
                    replace(other, priority=other.priority + 3) if other is one else other
                    for other in cycle.snapshot.waiting
                ),
            )
        )
        if one.job in {decision.job for decision in raised.starts}:
            return
        assert one.job not in {decision.job for decision in cycle.made.starts}, f"#{one.job} at {cycle.at:.0f}"
        before = cycle.made.bar
        if before is not None and before.job == one.job:
            assert raised.bar is not None
            assert (raised.bar.job, raised.bar.at <= before.at + TOLERANCE) == (one.job, True)

    for seed in days:
        play(a_day(seed, wrong=WRONG, most=24), check)
