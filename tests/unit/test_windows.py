from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.domain.resources import GIB, MIB
from calibration.domain.sediment import Key
from calibration.domain.windows import Window, both_in_one, close, observe, open_row

KEY = Key("w", "f1", "{}", "train.py", 4)


def watch(readings, busy=None, started=0.0):
    """Return the window after (at, amounts) pairs."""
    window = Window(started)
    for at, amounts in readings:
        window = observe(window, at, amounts, busy)
    return window


def test_the_peak_is_kept_and_not_the_last_level():
    window = watch([(1, {"vram": 5000, "ram": 2500}), (2, {"vram": 2000, "ram": 1000})])
    row = close(window, 3.0, "completed", key=KEY)
    assert row.peaks == {"vram": 5000, "ram": 2500}
    assert row.completed
    assert row.samples == {"vram": 2, "ram": 2}
    assert row.key.workers == 4


def test_a_run_without_a_reading_leaves_nothing():
    assert close(Window(0.0), 0.4, "completed", key=KEY) is None
    assert open_row(Window(0.0), KEY) is None
    # One look proves too little to found a need on.
    assert close(watch([(1, {"ram": 5})]), 1.4, "completed", key=KEY) is None


@pytest.mark.parametrize("vram", [None, "absent"])
def test_a_kind_that_was_never_known_has_no_number(vram):
    amounts = {"ram": 200 * MIB} if vram == "absent" else {"ram": 200 * MIB, "vram": None}
    row = close(watch([(1, amounts), (2, amounts), (3, amounts)]), 3.2, "completed", key=KEY)
    assert row.peaks == {"ram": 200 * MIB}
    assert row.samples == {"ram": 3}


def test_a_zero_that_was_read_is_a_number():
    row = close(watch([(1, {"vram": 0}), (2, {"vram": 0})]), 2.5, "completed", key=KEY)
    assert row.peaks == {"vram": 0}


def test_the_same_reading_twice_is_one_sample():
    window = watch([(1, {"ram": 7}), (1, {"ram": 9}), (0.5, {"ram": 11})])
    assert window.levels["ram"].samples == 1
    assert window.levels["ram"].peak == 7


def test_gaps_are_counted_from_the_start_to_the_end():
    window = watch([(4, {"ram": 1}), (6, {"ram": 1}), (7, {"ram": None}), (9, {"ram": 1})])
    assert window.levels["ram"].longest_gap == 4
    assert close(window, 20.0, "failed", key=KEY).longest_gap == 11


def test_a_completed_run_unseen_for_most_of_its_time_gives_a_lower_bound_only():
    seen_early = [(1, {"ram": 900, "vram": 700}), (2, {"ram": 900, "vram": 700})]
    later = [(at, {"ram": 900, "vram": None}) for at in range(3, 100)]
    row = close(watch(seen_early + later), 100.0, "completed", key=KEY)
    assert row.peaks == {"ram": 900}
    assert row.next_charge == {"vram": 700}
    assert "unseen for 98 of 100 s" in row.lower_bound_note


def test_small_creeping_is_flat_and_the_peak_time_is_that_of_the_last_rise():
    window = watch([(1, {"vram": 0}), (5, {"vram": 8 * GIB}), (60, {"vram": 8 * GIB + 60 * MIB})])
    level = window.levels["vram"]
    assert level.rose_at == 5
    assert level.peak == 8 * GIB + 60 * MIB
    assert close(window, 61.0, "failed", key=KEY).seconds_to_peak == {"vram": 5.0}


def test_seconds_to_the_peak_end_at_the_last_rise():
    readings = [(at, {"vram": min(at, 5) * GIB}) for at in range(1, 20)]
    row = close(watch(readings), 20.0, "completed", key=KEY)
    assert row.seconds_to_peak == {"vram": 5.0}


def test_only_seen_time_counts_as_flat_and_only_busy_time_as_work():
    flat = [(at, {"vram": GIB}) for at in (1, 2, 3, 103)]
    assert watch(flat).levels["vram"].flat_seconds == 7  # an outage of 100 s proves 5 at most
    assert watch(flat, busy=0.05).levels["vram"].worked_seconds == 0
    assert watch(flat, busy=0.5).levels["vram"].worked_seconds == 7
    assert watch([*flat, (104, {"vram": 2 * GIB})]).levels["vram"].flat_seconds == 0


def test_a_death_at_the_cap_asks_for_more_even_when_nothing_was_seen():
    row = close(Window(0.0), 0.4, "cap_exceeded", key=KEY, cap={"vram": 9800 * MIB}, died_of={"vram": "cap"})
    assert row.next_charge == {"vram": 14700 * MIB}
    assert not row.completed
    assert row.peaks == {}


def test_a_death_asks_for_no_more_than_its_pool_gives_unless_it_had_all_of_it():
    given = {"cap": {"vram": 20 * GIB}, "died_of": {"vram": "cap"}, "most": {"vram": 23 * GIB}}
    row = close(Window(0.0), 0.4, "cap_exceeded", key=KEY, charge={"vram": 15 * GIB}, **given)
    assert row.next_charge == {"vram": 23 * GIB}
    for had in ({"vram": 23 * GIB}, {}):  # a larger card may serve it; what it had is not known
        row = close(Window(0.0), 0.4, "cap_exceeded", key=KEY, charge=had, **given)
        assert row.next_charge == {"vram": 30 * GIB}


def test_the_row_keeps_cap_and_charge_and_says_what_began_with_the_job():
    window = watch([(1, {"vram": 4000}), (2, {"vram": 4000})])
    row = close(
        window,
        3.0,
        "completed",
        key=KEY,
        charge={"vram": 5000},
        cap={"vram": 6000},
        unexplained={"vram": 8900 * MIB},
    )
    assert (row.charge, row.cap) == ({"vram": 5000}, {"vram": 6000})
    assert row.lower_bound_note == "vram: lower bound, up to 8.7 GiB more began with this job"


def test_a_window_survives_a_restart():
    window = watch([(1, {"vram": 5, "ram": None}), (2, {"vram": 9, "ram": 3})], busy=0.4)
    kept = json.loads(json.dumps(window.as_data()))
    kept["levels"]["ram"]["of_a_later_version"] = 1
    assert Window.from_data(kept) == window
    assert Window.from_data(json.loads(json.dumps(Window(3.0).as_data()))) == Window(3.0)


def test_an_open_row_is_marked_and_has_not_completed():
    row = open_row(watch([(1, {"vram": 5 * GIB})]), KEY, wall=7.0)
    assert row.open
    assert not row.completed
    assert row.peaks == {"vram": 5 * GIB}


@settings(max_examples=150)
@given(st.lists(st.none() | st.integers(0, 2**36), max_size=20))
def test_unknown_never_becomes_zero_and_the_peak_is_the_largest_known(amounts):
    window = watch([(at, {"vram": amount}) for at, amount in enumerate(amounts, start=1)])
    seen = [amount for amount in amounts if amount is not None]
    assert ("vram" in window.levels) == bool(seen)
    if seen:
        assert window.levels["vram"].peak == max(seen)
        assert window.levels["vram"].samples == len(seen)
        assert len(window.levels["vram"].recent) <= 3


def test_both_kinds_in_one_pool_are_as_high_as_their_sum_and_as_settled_as_the_less_so() -> None:
    window = Window(0.0)
    for at in range(1, 100):
        vram = 200 * MIB if at < 60 else 900 * MIB
        window = observe(window, float(at), {"ram": 100 * MIB, "vram": vram}, 0.9)
    both = both_in_one(window).levels["ram"]
    assert both.peak == 1000 * MIB
    assert both.flat_seconds == window.levels["vram"].flat_seconds < window.levels["ram"].flat_seconds
    assert both_in_one(Window(0.0)).levels == {}
    alone = observe(Window(0.0), 1.0, {"ram": MIB}, None)
    assert both_in_one(alone).levels == {}, "what is seen of one kind says nothing of both"
