"""The product in the replay decides as if it were asked every second, and follows its own rules after a kill."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from bench.world.engine import World
from bench.world.product import Product
from bench.world.runs import Job
from bench.world.setting import Setting, knobs
from bench.world.shapes import shape_of
from bench.world.submissions import Submission

CAP = 16384.0
ONE = Submission(0, 0.0, 600.0, 1, "fit:b1", 6000.0, 1000.0, 0.0, 0.6, 30.0, 0.92, 0.5)


class EverySecond(Product):
    """The product as the service runs it: charges, watchdog and gate each second, whether anything happened or not."""

    def due(self, world: World) -> float:
        return math.floor(world.t + 1e-6) + 1.0 if world.queue or self.watched else math.inf

    def look(self, world: World) -> bool:
        for one in list(self.watched.values()):
            one.look_at = world.t
        self.low_at = world.t
        super().look(world)
        return True


def trace(seed: int, count: int = 14) -> list[Submission]:
    rng, at, found = random.Random(seed), 0.0, []
    for place in range(count):
        at += rng.expovariate(1 / 45)
        kind = rng.randrange(4)
        peak = min(CAP, (2500.0, 4000.0, 7000.0, 11000.0)[kind] * rng.choice((1, 1, 1, 1.3)))
        length = rng.randrange(30, 420) + 0.37  # nothing but readings falls on a whole second
        said = rng.choice((0.0, 0.7, 1.2)) * peak
        found.append(
            replace(
                ONE,
                id=place,
                arrival=round(at) + 0.51,
                duration=length,
                key=f"kind{kind}:b1",
                peak=peak,
                declared=min(CAP, said),
                load=min(60.0, 0.3 * length),
                spike=rng.choice((0.0, 0.4, 0.9)),
            )
        )
    return found


def played(rows: list[Submission], policy: Product, shape: str = "trace", devices: int = 2) -> World:
    jobs = [Job(row, shape_of(row, shape, 0)) for row in rows]
    world = World(jobs, policy, devices, CAP)
    world.play()
    return world


def product(kind: type[Product] = Product, **turned: str) -> Product:
    return kind(*knobs(turned))


@pytest.mark.parametrize("shape", ["trace", "staged", "second"])
def test_asking_only_when_something_changed_gives_the_same_starts_and_ends(shape: str) -> None:
    few, all_of_them = played(trace(3), product(), shape), played(trace(3), product(EverySecond), shape)

    assert [(job.row.id, job.first_start, job.ended, job.kills) for job in few.jobs] == [
        (job.row.id, job.first_start, job.ended, job.kills) for job in all_of_them.jobs
    ]
    assert few.tally.asked < all_of_them.tally.asked / 5


def test_a_first_run_has_its_device_to_itself_until_it_settles_and_the_next_is_charged_what_was_seen() -> None:
    world = played([ONE, replace(ONE, id=1, arrival=10.0), replace(ONE, id=2, arrival=3000.0)], product(), devices=1)
    first, second, third = world.jobs

    settled = math.floor((first.first_start or 0) + 30) + 60  # loaded, then a minute of work
    assert second.first_start == pytest.approx(settled, abs=2)
    assert third.first_start == 3001.0
    assert world.tally.oom_kills == 0


def test_a_run_that_dies_at_its_cap_comes_back_with_a_larger_charge_and_ends() -> None:
    world = played([replace(ONE, declared=3000.0)], product(), devices=1)

    assert world.tally.cap_kills == 1
    assert world.jobs[0].kills == 1
    assert world.tally.lost_gpu_hours > 0


def test_whoever_needs_all_of_a_device_takes_it_alone() -> None:
    whole = replace(ONE, peak=CAP, declared=CAP)
    world = played([whole, replace(whole, id=1), replace(ONE, id=2, arrival=1.0)], product(), devices=1)

    spans = sorted((job.first_start or 0.0, job.ended or 0.0) for job in world.jobs)
    assert all(begin >= end for (_, end), (begin, _) in pairwise(spans))


def test_the_watchdog_stops_who_grew_past_its_charge_before_the_device_is_full() -> None:
    slow = replace(ONE, key="slow:b1", declared=11000.0, peak=14600.0, load=1000.0, duration=4000.0, steady=1.0)
    beside = replace(ONE, id=1, key="beside:b1", arrival=5.0, duration=9000.0, peak=2000.0, declared=2000.0)
    world = played([slow, beside], product(), devices=1)

    assert (world.tally.watchdog_kills, world.tally.oom_kills) == (1, 0)
    assert world.jobs[1].kills == 0


def test_a_knob_of_either_table_is_turned_and_an_unknown_one_is_named() -> None:
    ours, theirs = knobs({"cold_start_share": "0.3", "settle_seconds": "30"})

    assert (ours.cold_start_share, theirs.settle_seconds) == (0.3, 30.0)
    with pytest.raises(ValueError, match="no knob 'colour'"):
        knobs({"colour": "red"})


def test_a_wrong_trace_file_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("job_id,arrival_s\n1,0\n")

    with pytest.raises(ValueError, match=r"lacks the columns .*peak_vram_mb"):
        Setting(str(path)).rows()
