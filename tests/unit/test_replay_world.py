"""The replayed machine room keeps the laws of the real one, whatever policy fills it."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from functools import cache

import pytest

from bench.world.engine import World
from bench.world.outsiders import visits
from bench.world.policies import POLICIES
from bench.world.runs import Job
from bench.world.setting import PRODUCT, Setting
from bench.world.shapes import SHAPES, shape_of
from bench.world.submissions import Submission
from bench.world.tally import Tally

CAP, DEVICES = 20480.0, 3


class Seen(World):
    """A world that looks at every device after every step."""

    def _step(self) -> None:
        super()._step()
        for device in self.devices:
            if device.full_at > self.t:  # else whoever has just been let in dies before time goes on
                assert device.measured(self.t) <= self.capacity + 1, (self.policy.name, self.t)
            assert all(run.usage(self.t) <= run.limit + 1 for run in device.runs), (self.policy.name, self.t)


def rows(seed: int, count: int = 50, groups: bool = False) -> list[Submission]:
    """Return short jobs of a few kinds, some said to need nothing, too little or too much."""
    rng, at, found = random.Random(seed), 0.0, []
    for place in range(count):
        at += rng.expovariate(1 / 300)
        kind = rng.choice((900, 3000, 7000, 12000, 18000))
        peak = min(CAP - 400, kind * rng.uniform(0.95, 1.2))
        length = math.ceil(rng.lognormvariate(7, 1.2)) + 20.0
        said = min(CAP, peak * rng.choice((0, 0.6, 1.1, 1.5)))
        count_of_devices = 2 if groups and rng.random() < 0.1 else 1
        load, spike = min(60.0, 0.3 * length), rng.choice((0.0, 0.3, 0.9))
        found.append(
            Submission(
                place,
                float(round(at)),
                length,
                count_of_devices,
                f"k{kind}:b1",
                peak,
                1000,
                said,
                rng.uniform(0.1, 0.9),
                load,
                0.9,
                spike,
            )
        )
    return found


def play(name: str, trace: list[Submission], *, shape: str = "trace", outsiders: int = 0, slow: bool = False) -> Tally:
    setting = Setting("", DEVICES, CAP)
    jobs = [Job(row, shape_of(row, shape, 0)) for row in trace]
    there = visits(outsiders, DEVICES, CAP, 4e5) if outsiders else ()
    world = Seen(jobs, setting.policy(name), DEVICES, CAP, interference=slow, visits=there)
    tally = world.play()
    assert not world.queue
    assert not world.runs
    assert all(job.ended is not None and job.ended - job.row.arrival >= job.solo - 1e-3 for job in world.jobs)
    return tally


@cache
def least() -> tuple[float, float]:
    from bench.world.bounds import bounds

    found = bounds([Job(row, shape_of(row, "trace", 0)) for row in rows(1)], DEVICES, CAP)
    return found.makespan, found.mean_jct


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("outsiders", [0, 1])
@pytest.mark.parametrize("name", [*POLICIES, PRODUCT])
def test_every_job_ends_within_the_memory_there_is_and_nothing_beats_the_bounds(
    name: str, outsiders: int, slow: bool
) -> None:
    tally = play(name, rows(1), outsiders=outsiders, slow=slow)

    span, jct = least()
    assert tally.makespan >= span - 1e-3
    assert tally.mean_jct >= jct - 1e-3
    if name.startswith(("oracle", "exclusive")) and not outsiders:
        assert tally.oom_kills == 0


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_the_product_gets_jobs_of_every_shape_to_their_end(shape: str) -> None:
    tally = play(PRODUCT, rows(2), shape=shape)

    assert tally.oom_kills + tally.cap_kills + tally.watchdog_kills < 40


@pytest.mark.parametrize("seed", range(4))
def test_whole_devices_in_order_of_arrival_can_be_worked_out_without_a_replay(seed: int) -> None:
    trace = rows(seed, groups=True)
    free, start = [0.0] * DEVICES, 0.0
    for row in trace:
        free.sort()
        start = math.floor(max(start, row.arrival, free[row.devices - 1])) + 1.0  # the gate looks once a second
        free[: row.devices] = [start + row.duration] * row.devices

    assert play("exclusive-fifo", trace).makespan == pytest.approx(max(free) - trace[0].arrival, abs=len(trace))


def test_a_job_that_no_device_can_hold_is_refused_with_its_figures() -> None:
    row = replace(rows(1, 1)[0], peak=CAP + 1)

    with pytest.raises(ValueError, match="can never run: 20481 MiB on 1 device"):
        play("oracle-easy", [row])


def test_who_came_first_is_not_who_dies_when_a_device_fills_up() -> None:
    calm = Submission(0, 0.0, 5000, 1, "calm:b1", 15000, 0, 0, 0.5, 60, 1.0, 0.0)
    late = replace(calm, id=1, arrival=600.0, key="late:b1", peak=9000, declared=1000)

    tally = play("declared-skip", [replace(calm, declared=15000), late])

    assert (tally.oom_kills, tally.ooms["own"]) == (1, 1)
    assert tally.lost_gpu_hours == pytest.approx(60 * 5480 / 8700 / 3600 - 60 * 300 / 8700 / 3600, rel=0.1)


def test_somebody_whose_neighbour_broke_its_word_is_counted_as_its_victim() -> None:
    liar = Submission(0, 0.0, 5000, 1, "liar:b1", 18000, 0, 1000, 0.5, 60, 1.0, 0.0)
    honest = replace(liar, id=1, arrival=600.0, key="honest:b1", peak=4000, declared=4000)

    tally = play("declared-skip", [liar, honest])

    assert (tally.oom_kills, tally.ooms["neighbour"]) == (1, 1)
