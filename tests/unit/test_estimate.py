from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.domain.estimate import Basis, estimate
from calibration.domain.knobs import DEFAULTS
from calibration.domain.resources import MIB, times
from calibration.domain.sediment import Key, Row
from tests.examples import examples

KEY = Key("train", "h1", "{}", "train.py", 1)
BOTH = frozenset({"ram", "vram"})
VRAM = frozenset({"vram"})


def row(vram=None, ram=None, at=0.0, completed=True, **more):
    """Return a row of KEY with peaks in MiB; ``workers``, ``fingerprint``, ``params`` change its key."""
    changes = {name: more.pop(name) for name in ("workers", "fingerprint", "params", "script") if name in more}
    peaks = {kind: peak * MIB for kind, peak in (("vram", vram), ("ram", ram)) if peak is not None}
    outcome = more.pop("outcome", "completed" if completed else "failed")
    in_mib = {name: {"vram": more.pop(name) * MIB} for name in ("charge", "cap", "next_charge") if name in more}
    return Row(replace(KEY, **changes), completed, peaks, outcome=outcome, at=at, **in_mib, **more)


def vram(rows, workers=1, **more):
    """Return the estimate of VRAM for KEY."""
    more = {name: {"vram": value * MIB} for name, value in more.items()}
    return estimate(replace(KEY, workers=workers), rows, needs=VRAM, **more).pools["vram"]


def at_workers(by_workers):
    return [row(peak, at=at, workers=count) for at, (count, peak) in enumerate(by_workers.items())]


@pytest.mark.parametrize(
    "seen, workers, need, basis",
    [
        ({}, 1, None, Basis.COLD_START),
        ({2: 600}, 2, 600, Basis.MEASURED),
        ({1: 300}, 4, 1200, Basis.SCALED),
        ({1: 300, 3: 900}, 4, 1200, Basis.FITTED),
        ({1: 900, 3: 300}, 10, 900, Basis.FITTED),  # falling: flat at the largest
        ({1: 900, 3: 300}, 2, 900, Basis.FITTED),
        ({1: 0}, 5, 0, Basis.SCALED),
        ({1: 0, 2: 0}, 7, 0, Basis.FITTED),
        ({1: 1000, 2: 1100, 8: 1200}, 3, 1100, Basis.FITTED),  # the line alone would say 1084
        ({4: 100, 8: 1000}, 1, 100, Basis.FITTED),  # the line alone would run below zero
        ({1: 1000}, 4, 4000, Basis.SCALED),
        ({1: 1000}, 0, 1000, Basis.MEASURED),
        ({1: 1000}, -3, 1000, Basis.MEASURED),
    ],
)
def test_need_over_worker_counts(seen, workers, need, basis):
    pool = vram(at_workers(seen), workers)
    assert pool.basis is basis
    assert pool.need == (None if need is None else need * MIB)


def test_all_eight_rungs_are_told_best_first_and_one_counts():
    pool = vram([row(1000), row(700, params="{2}", at=1), row(500, fingerprint="h0")], hint=600, declared=400)
    assert [rung.basis for rung in pool.rungs] == sorted(Basis, reverse=True)
    numbers = {rung.basis.word: rung.bytes and rung.bytes // MIB for rung in pool.rungs}
    assert numbers == {
        "measured": 1000,
        "fitted": None,
        "scaled": 1000,
        "edited": 500,
        "similar": 1000,
        "hint": 600,
        "declared": 400,
        "cold_start": None,
    }
    assert [rung.basis for rung in pool.rungs if rung.counted] == [Basis.MEASURED]
    assert pool.margin == 64 * MIB
    assert all(rung.why for rung in pool.rungs if rung.bytes is not None)


def test_charges_carry_no_margin():
    found = estimate(KEY, [row(1000, 2000)], needs=BOTH)
    assert {kind: pool.need for kind, pool in found.pools.items()} == {"vram": 1000 * MIB, "ram": 2000 * MIB}
    assert (found.basis, found.need) == (Basis.MEASURED, 3000 * MIB)


def test_each_pool_stands_on_its_own_rung_and_the_whole_on_the_worst():
    found = estimate(KEY, [row(1000)], needs=BOTH, declared={"vram": 700 * MIB, "ram": 300 * MIB})
    assert found.pools["vram"].basis is Basis.MEASURED
    assert (found.pools["ram"].need, found.pools["ram"].basis) == (300 * MIB, Basis.DECLARED)
    assert found.basis is Basis.DECLARED


def test_one_unknown_pool_makes_the_total_unknown_and_leaves_the_partial_sum():
    found = estimate(KEY, [row(1000)], needs=BOTH)
    assert (found.need, found.known, found.basis) == (None, 1000 * MIB, Basis.COLD_START)
    assert found.pools["ram"].need is None


def test_a_declared_zero_says_nothing_and_a_hinted_zero_does():
    assert vram([], declared=0).basis is Basis.COLD_START
    assert (vram([], hint=0).need, vram([], hint=0).basis) == (0, Basis.HINT)


def test_the_ladder_from_the_bottom():
    assert vram([], declared=700).basis is Basis.DECLARED
    assert vram([], declared=700, hint=600).basis is Basis.HINT
    similar = [row(800, params="{2}", fingerprint="h7"), row(900, params="{3}", completed=False)]
    assert (vram(similar, hint=600).need, vram(similar, hint=600).basis) == (800 * MIB, Basis.SIMILAR)
    edited = [*similar, row(500, fingerprint="h0")]
    assert (vram(edited).need, vram(edited).basis) == (500 * MIB, Basis.EDITED)


def test_typed_in_code_has_nothing_similar():
    nameless = replace(KEY, script="")
    found = estimate(nameless, [row(800, params="{2}", script="")], needs=VRAM)
    assert found.basis is Basis.COLD_START


def test_sources_that_come_back_are_measured_again():
    rows = [row(1000, 500, at=1), row(2000, 700, at=2, workers=2), row(500, at=3, fingerprint="h2")]
    new = estimate(replace(KEY, fingerprint="h2"), rows, needs=BOTH)
    assert (new.pools["vram"].need, new.pools["vram"].basis) == (500 * MIB, Basis.MEASURED)
    assert (new.pools["ram"].need, new.pools["ram"].basis) == (500 * MIB, Basis.EDITED)
    assert estimate(KEY, rows, needs=VRAM).pools["vram"].need == 1000 * MIB


def test_edited_is_the_last_known_need_and_not_the_largest_ever():
    rows = [row(9000, fingerprint="h0", at=1), row(4000, fingerprint="h9", at=2)]
    assert vram(rows).need == 4000 * MIB


def test_each_pool_keeps_its_own_maximum():
    rows = [row(100, 7, at=1), row(50, at=2)]
    found = estimate(KEY, rows, needs=BOTH)
    assert [found.pools[kind].need for kind in ("vram", "ram")] == [100 * MIB, 7 * MIB]


def test_a_run_that_did_not_complete_never_founds_a_measurement():
    pool = vram([row(300, completed=False)])
    assert (pool.basis, pool.need) == (Basis.COLD_START, None)
    assert pool.at_least == 300 * MIB
    assert pool.notes == ("a run (failed) really used 300 MiB",)


def test_a_higher_peak_of_a_run_that_did_not_complete_raises_and_a_lower_one_does_nothing():
    completed = row(1000, at=1)
    assert vram([completed, row(1500, at=2, completed=False)]).need == 1500 * MIB
    assert vram([completed, row(1500, at=2, completed=False)]).basis is Basis.MEASURED
    assert vram([completed, row(200, at=2, completed=False)]).need == 1000 * MIB


def test_learning_from_failures():
    first = row(10000, at=1, charge=10000)
    death = row(9800, at=2, completed=False, outcome="cap_exceeded", cap=9800, charge=7000, next_charge=14700)
    after = vram([first, death])
    assert after.need == 14700 * MIB
    assert any("cap_exceeded" in rung.why for rung in after.rungs if rung.counted)
    cancelled = row(0, at=3, completed=False, outcome="cancelled")
    import_error = row(0, at=4, completed=False)
    assert vram([first, death, cancelled, import_error]).need == 14700 * MIB
    for count in range(1, 5):
        assert vram([first, death, cancelled, import_error][:count]).need >= 10000 * MIB


def test_the_raise_after_a_death_ends_with_a_completed_run_on_as_much():
    death = row(9800, at=2, completed=False, next_charge=14700)
    too_small = row(9000, at=3, charge=14699)
    enough = row(11000, at=3, charge=14700)
    before = row(11000, at=1, charge=14700)
    assert vram([death, too_small]).need == 14700 * MIB
    assert vram([death, before]).need == 14700 * MIB
    assert vram([death, enough]).need == 11000 * MIB
    # What the dead run really used stays a lower bound.
    assert vram([death, row(9000, at=3, charge=14700)]).need == 9800 * MIB


def test_a_death_raises_a_guess_too():
    death = row(700, at=2, completed=False, next_charge=1412)
    assert (vram([death], declared=700).need, vram([death], declared=700).basis) == (1412 * MIB, Basis.DECLARED)
    assert vram([replace(death, key=replace(KEY, fingerprint="h0"))], declared=700).need == 1412 * MIB


def test_failures_with_more_workers_say_nothing_about_fewer():
    rows = [row(1000, at=1), row(8000, at=2, workers=8, completed=False)]
    assert vram(rows).need == 1000 * MIB


def test_atypical_rows_do_not_count():
    rows = [row(1000, at=1), row(9000, at=2, atypical=True), row(9500, at=3, completed=False, atypical=True)]
    assert vram(rows).need == 1000 * MIB


def test_from_ten_runs_on_the_quantile_stands_and_one_outlier_does_not():
    nine = [row(1000 + n, at=n) for n in range(9)]
    assert vram(nine).need == 1008 * MIB
    ten = [*nine, row(1400, at=9)]
    assert vram(ten).need == 1008 * MIB
    assert "largest 1.4 GiB" in vram(ten).rungs[0].why


def test_two_kinds_of_run_under_one_name_count_the_largest_and_say_so():
    rows = [*(row(1000, at=n) for n in range(19)), row(1501, at=19)]
    assert vram(rows).need == 1501 * MIB
    assert "two kinds of run under one name" in vram(rows).notes[0]
    assert vram([*rows[:19], row(1500, at=19)]).need == 1000 * MIB


def test_only_the_last_fifty_runs_count():
    rows = [row(5000, at=0), *(row(1000, at=n) for n in range(1, 51))]
    assert vram(rows).need == 1000 * MIB
    assert vram(rows[:50]).need == 5000 * MIB


def test_a_settled_run_that_goes_on_counts_as_scaled():
    going_on = row(800, completed=False, outcome="running", open=True)
    assert (vram([going_on]).need, vram([going_on]).basis) == (800 * MIB, Basis.SCALED)
    assert vram([going_on], workers=2).need == 1600 * MIB
    assert vram([going_on, row(700, at=1)]).basis is Basis.MEASURED


def test_a_preallocation_under_a_receipt_starts_the_next_run_on_three_quarters():
    runs = [row(18000, at=1, preallocated=True), row(9000, at=2, preallocated=True)]
    pool = vram(runs)
    assert pool.need == 13500 * MIB
    assert any("took what it was given" in note for note in pool.notes)
    assert vram([row(18000, at=1)]).need == 18000 * MIB


def test_a_pin_counts_and_what_was_seen_above_it_is_told():
    pool = vram([row(1000), row(2000, at=1, completed=False)], pinned=1200)
    assert (pool.need, pool.basis) == (1200 * MIB, Basis.MEASURED)
    assert pool.notes == ("a run (failed) really used 2.0 GiB",)


def test_a_declaration_far_below_what_was_seen_is_flagged_and_what_was_seen_stands():
    pool = vram([row(2000)], declared=700)
    assert pool.need == 2000 * MIB
    assert pool.notes == ("declared 700 MiB, but 2.0 GiB was seen",)
    assert vram([row(1000)], declared=700).notes == ()


def test_a_lower_bound_note_of_a_run_reaches_the_estimate():
    said = "ram: lower bound, unseen for 9 of 10 s; vram: lower bound, up to 8.7 GiB more began with this job"
    pool = vram([row(4000, lower_bound_note=said)])
    assert pool.need == 4000 * MIB
    assert pool.notes == ("lower bound, up to 8.7 GiB more began with this job",)
    assert vram([row(4000, lower_bound_note="ram: lower bound, unseen for 9 of 10 s")]).notes == ()


ROWS = st.lists(
    st.builds(
        row,
        vram=st.none() | st.integers(0, 10**5),
        at=st.integers(0, 9).map(float),
        completed=st.booleans(),
        workers=st.integers(1, 6),
        fingerprint=st.sampled_from(["h1", "h0"]),
        params=st.sampled_from(["{}", "{2}"]),
        atypical=st.booleans(),
        open=st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=examples(150), deadline=None)
@given(ROWS, st.integers(1, 6))
def test_same_input_same_output_and_the_order_of_rows_does_not_matter(rows, workers):
    assert vram(rows, workers) == vram(rows, workers)
    assert vram(rows, workers).need == vram(rows[::-1], workers).need


@settings(max_examples=examples(150), deadline=None)
@given(ROWS, st.integers(1, 6))
def test_a_learned_need_covers_what_was_seen_with_fewer_or_equal_workers(rows, workers):
    pool = vram(rows, workers)
    same = [r for r in rows if r.key.params == "{}" and r.key.fingerprint == "h1" and not r.atypical and r.peaks]
    if pool.basis in (Basis.FITTED, Basis.MEASURED):
        counting = [r for r in same if r.key.workers == workers or pool.basis is Basis.FITTED]
        assert pool.need >= max((r.peaks["vram"] for r in counting if r.key.workers <= workers), default=0)


@settings(max_examples=examples(150), deadline=None)
@given(ROWS, st.integers(1, 6))
def test_unknown_never_becomes_zero(rows, workers):
    pool = vram(rows, workers)
    numbers = [rung.bytes for rung in pool.rungs]
    assert (pool.need is None) == all(number is None for number in numbers)
    if not any(r.completed or r.open for r in rows if r.peaks and not r.atypical):
        assert pool.need is None
    if pool.need == 0:
        assert any(r.peaks.get("vram") == 0 for r in rows)


@settings(max_examples=examples(100), deadline=None)
@given(ROWS)
def test_margins_follow_the_counted_rung(rows):
    pool = vram(rows)
    if pool.basis in (Basis.SCALED, Basis.EDITED, Basis.SIMILAR):
        assert pool.margin == times(pool.need, DEFAULTS.scaled_margin)
