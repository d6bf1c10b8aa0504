"""Generated traces have the statistics of the published ones that they are modelled on; those stand beside them."""

from __future__ import annotations

import math
import statistics as st
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import pytest

from bench.world import synthetic
from bench.world.submissions import Submission

SEEDS = range(1, 6)


def gaps(rows: Sequence[Submission]) -> list[float]:
    return [b.arrival - a.arrival for a, b in pairwise(rows)]


def within_keys(rows: Sequence[Submission]) -> float:
    """Return the deviation of the log of a run's length from its key's median."""
    found = defaultdict(list)
    for row in rows:
        found[row.key].append(math.log(row.duration))
    return st.pstdev([one - st.median(some) for some in found.values() for one in some])


def variation(values: Sequence[float]) -> float:
    return st.pstdev(values) / st.mean(values)


def mean(kind: str, of: object) -> float:
    """Return a statistic's mean over some seeds."""
    return st.mean(of(synthetic.KINDS[kind](seed)) for seed in SEEDS)  # type: ignore[operator]


@pytest.mark.parametrize(
    "kind, what, published, rel",
    [
        ("synthetic", lambda rows: len({row.key for row in rows}), 31, 0.05),
        ("synthetic", lambda rows: variation(gaps(rows)), 2.75, 0.2),
        ("synthetic", lambda rows: st.median(gaps(rows)), 49, 0.4),
        ("synthetic", lambda rows: st.mean(row.duration for row in rows), 7018, 0.25),
        ("synthetic", lambda rows: st.pstdev([math.log(row.duration) for row in rows]), 2.38, 0.15),
        ("synthetic", within_keys, 1.66, 0.15),
        ("synthetic", lambda rows: Counter(row.key for row in rows).most_common(1)[0][1] / len(rows), 0.067, 0.2),
        ("synthetic", lambda rows: st.median(row.peak for row in rows), 6747, 0.2),
        ("synthetic", lambda rows: sum(0 < row.declared < row.peak for row in rows) / len(rows), 0.133, 0.25),
        ("synthetic", lambda rows: sum(row.declared == 0 for row in rows) / len(rows), 0.042, 0.3),
        ("synthetic", lambda rows: sum(row.devices > 1 for row in rows) / len(rows), 0.051, 0.3),
        ("synthetic-shares", lambda rows: len({row.key for row in rows}), 49, 0.1),
        ("synthetic-shares", lambda rows: variation(gaps(rows)), 1.84, 0.2),
        ("synthetic-shares", lambda rows: st.mean(row.duration for row in rows), 2599, 0.3),
        ("synthetic-shares", lambda rows: st.median(row.duration for row in rows), 570, 0.4),
        ("synthetic-shares", within_keys, 1.54, 0.2),
        ("synthetic-shares", lambda rows: Counter(row.key for row in rows).most_common(1)[0][1] / len(rows), 0.41, 0.1),
        ("synthetic-shares", lambda rows: st.mean(row.peak for row in rows), 9669, 0.15),
        ("synthetic-shares", lambda rows: sum(row.declared != row.peak for row in rows), 0, 0),
    ],
)
def test_a_generated_trace_has_the_statistic_of_the_published_one(
    kind: str, what: object, published: float, rel: float
) -> None:
    assert mean(kind, what) == pytest.approx(published, rel=rel)


@pytest.mark.parametrize(
    "kind, memory",
    [("synthetic", 4 * 24576), ("synthetic-shares", 4 * 16384), ("synthetic-carma", 4 * 40960)],
)
def test_a_generated_trace_loads_the_memory_it_was_made_for_to_95_per_cent(kind: str, memory: float) -> None:
    rows = synthetic.KINDS[kind](3)
    asked = sum(row.devices * row.peak * row.duration for row in rows)

    assert asked / (memory * rows[-1].arrival) == pytest.approx(0.95, abs=0.01)


def test_a_seed_gives_the_same_rows_and_another_seed_gives_others() -> None:
    assert synthetic.training(1) == synthetic.training(1) != synthetic.training(2)


def test_about_one_run_in_twelve_is_well_above_the_level_of_its_kind() -> None:
    of_one = synthetic.training(1)
    usual = {key: st.median(r.peak for r in of_one if r.key == key) for key in {row.key for row in of_one}}

    assert sum(row.peak > 1.1 * usual[row.key] for row in of_one) / len(of_one) == pytest.approx(0.08, abs=0.025)


@pytest.mark.parametrize("seed", SEEDS)
def test_carmas_like_has_sixty_tasks_none_too_short_to_be_judged_at_sixty_times_the_speed(seed: int) -> None:
    rows = synthetic.tasks(seed)

    assert len(rows) == 60
    assert all(600 <= row.duration <= 5400 and row.load <= 120 for row in rows)
    assert all(row.peak <= row.declared or not row.declared for row in rows if row.peak >= 16000)
    assert any(0 < row.declared < row.peak for row in rows)
    assert variation(gaps(rows)) > 1.2  # bursts and pauses
