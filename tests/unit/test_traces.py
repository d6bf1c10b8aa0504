from __future__ import annotations

import pytest

from placement.charts import traces

GIB = 1 << 30


def test_bytes_become_gib_and_the_unknown_a_gap():
    assert traces.gib([GIB, None, 0, 3 * GIB // 2]) == [1.0, None, 0.0, 1.5]


def test_times_are_milliseconds():
    assert traces.millis([1.5, 2]) == [1500, 2000]


def test_bars_across_hold_their_amounts_along_x():
    bar = traces.bars("peak", "o1", ["a", "b"], [1.0, 2.0], across=True, tones=["o1", "faint"])
    assert (bar["x"], bar["y"], bar["orientation"]) == ([1.0, 2.0], ["a", "b"], "h")
    assert bar["meta"]["tones"] == ["o1", "faint"]


def test_a_band_is_two_lines_of_which_one_is_named():
    low, high = traces.band("likely", "run", [1, 2], [1.0, 1.0], [2.0, 3.0])
    assert (low["meta"]["legend"], high["fill"]) == (False, "tonexty")
    assert "legend" not in high["meta"]


def test_a_tone_that_is_no_token_is_refused_where_it_is_made():
    with pytest.raises(ValueError, match="mauve is no tone"):
        traces.line("x", "mauve", [], [])
