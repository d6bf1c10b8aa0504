"""RAM of runs too short to be sampled: the kernel's figure fills the gap, and yields to whatever was sampled."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.domain.estimate import Basis, estimate
from calibration.domain.resources import MIB, MOST
from calibration.domain.sediment import Key, Row
from calibration.domain.windows import Window, close, observe

KEY = Key("w", "f1", "{}", "train.py", 1)
RAM = frozenset({"ram"})


def closed(rss, *, seen=(), outcome="completed", key=KEY, **more):
    """Return the row of a run of half a second with these readings of its RAM."""
    window = Window(0.0)
    for at, amount in enumerate(seen):
        window = observe(window, at / 10, {"ram": amount}, None)
    return close(window, 0.5, outcome, key=key, kernel_peak=rss, **more)


@pytest.mark.parametrize(
    ("rss", "workers", "peak"),
    [
        (100 * MIB, 1, 200 * MIB), (3 * MIB, 1, 64 * MIB), (1, 1, 64 * MIB),
        (100 * MIB, 4, 500 * MIB), (MOST, 1, 2 * MOST),
    ],
)  # fmt: skip
def test_it_stands_twice_for_a_run_that_nobody_saw_and_once_more_for_each_further_worker(rss, workers, peak):
    row = closed(rss, key=replace(KEY, workers=workers))
    assert (row.peaks, row.by_kernel, row.samples) == ({"ram": peak}, True, {})
    times = "twice" if workers == 1 else "5 times"
    assert row.lower_bound_note == f"ram: too short to be sampled: {times} the kernel's peak of its largest process"
    pool = estimate(row.key, [row], needs=RAM).pools["ram"]
    assert (pool.need, pool.basis) == (peak, Basis.MEASURED)
    assert pool.notes == (row.lower_bound_note.removeprefix("ram: "),)


@pytest.mark.parametrize("rss", [None, 0, -1, MOST + 1])
def test_no_figure_teaches_nothing(rss):
    assert closed(rss) is None


def test_only_a_completed_run_is_believed():
    assert closed(100 * MIB, outcome="failed") is None
    assert closed(100 * MIB, outcome="cancelled") is None


def test_what_was_sampled_stands_alone():
    row = closed(900 * MIB, seen=(70 * MIB, 80 * MIB))
    assert (row.peaks, row.by_kernel, row.lower_bound_note) == ({"ram": 80 * MIB}, False, "")


def test_a_single_look_raises_it():
    row = closed(100 * MIB, seen=(300 * MIB,))
    assert (row.peaks, row.samples) == ({"ram": 300 * MIB}, {"ram": 1})


def test_a_device_that_it_was_not_seen_on_is_not_learned_and_said_so():
    row = closed(100 * MIB, charge={"ram": MIB, "vram": MIB})
    assert row.peaks == {"ram": 200 * MIB}
    assert row.lower_bound_note.endswith("; vram: too short to be seen on its device")


def row(peak, by_kernel, *, fingerprint="f1", params="{}", workers=1, completed=True, at=0.0):
    key = Key("w", fingerprint, params, "train.py", workers)
    outcome = "completed" if completed else "failed"
    return Row(key, completed, {"ram": peak * MIB}, outcome=outcome, by_kernel=by_kernel and completed, at=at)


rows = st.builds(
    row,
    st.integers(0, 10_000),
    st.booleans(),
    fingerprint=st.sampled_from(["f1", "f2"]),
    workers=st.integers(1, 3),
    completed=st.booleans(),
    at=st.floats(0, 100),
)


@given(st.lists(rows, max_size=8), rows.filter(lambda r: r.completed and not r.by_kernel), st.integers(1, 4))
def test_where_a_run_was_sampled_it_changes_nothing(some, sampled, workers):
    known = [*some, sampled]
    key = replace(KEY, workers=workers)
    without = [one for one in known if not one.by_kernel]
    assert estimate(key, known, needs=RAM) == estimate(key, without, needs=RAM)


@given(st.lists(rows, max_size=8), st.integers(1, 4))
def test_it_never_makes_less_of_what_is_known(some, workers):
    key = replace(KEY, workers=workers)
    with_, without = (
        estimate(key, known, needs=RAM).pools["ram"] for known in (some, [r for r in some if not r.by_kernel])
    )
    assert (with_.at_least or 0) >= (without.at_least or 0)
    assert without.need is None or with_.need == without.need


def test_other_arguments_that_were_sampled_say_more_than_other_arguments_that_were_not():
    others = [row(5000, by_kernel=True, params="a"), row(300, by_kernel=False, params="b")]
    pool = estimate(KEY, others, needs=RAM).pools["ram"]
    assert (pool.need, pool.basis) == (300 * MIB, Basis.SIMILAR)
