"""The record of forecasts: what it says of them, and what later ones learn from it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.domain.admission.decision import PlannedStart
from placement.domain.forecasting.accuracy import LEAST, Past, Record, by_ahead, figures, learned, moved, moved_far
from tests.examples import examples


def a_past(play: float, waited: float | None, late: float | None = None, **more: object) -> Past:
    """Return a forecast that was told as it was played."""
    sure, age = str(more.get("sure", "learned")), float(str(more.get("age", 0.0)))
    return Past(sure, play, play if late is None else late, play, play if late is None else late, waited, age)


def told(in_s: float, late_s: float | None = None, *, keeps: bool = False, sure: str = "learned") -> PlannedStart:
    late_s = in_s if late_s is None else late_s
    return PlannedStart("atlas", ("GPU-0",), 1000.0 + in_s, in_s, sure, keeps=keeps, late_s=late_s)


def test_a_short_record_changes_nothing_but_the_least_width() -> None:
    record = learned([a_past(600.0, 300.0)] * (LEAST - 1))
    shown = record.corrected(told(600.0, 900.0))
    assert (shown.in_s, shown.late_s) == (600.0, 600.0 + 300.0 + 30.0)
    assert record.corrected(told(600.0)).late_s == 600.0 + 0.3 * 600.0 + 30.0


def test_limits_that_are_never_used_up_make_forecasts_earlier() -> None:
    record = learned([a_past(600.0, 285.0, sure="limit")] * 50)
    shown = record.corrected(told(1200.0, sure="limit"))
    assert shown.in_s == pytest.approx(585.0)
    assert shown.at == pytest.approx(1585.0)
    assert record.corrected(told(1200.0)).in_s == 1200.0, "only limits are upper bounds by nature"


def test_a_kind_with_a_record_of_its_own_is_not_mixed_with_others() -> None:
    record = learned([a_past(600.0, 600.0)] * 40 + [a_past(600.0, 6000.0, sure="guess")] * 40)
    assert (record.corrected(told(600.0)).late_s or 0.0) < 700.0
    assert (record.corrected(told(600.0, sure="guess")).late_s or 0.0) >= 6000.0
    assert record.of("learned", 10_000.0) is record.all


def test_the_late_end_holds_for_nine_of_ten_of_those_that_follow() -> None:
    draw = random.Random(7)

    seen: list[Past] = []

    def one() -> Past:
        play = draw.uniform(60.0, 6000.0)
        return a_past(play, play * draw.lognormvariate(0.0, 0.8), play * 1.2)

    record = Record()
    for _ in range(30):  # as time goes on: what was told by the record is judged by the next
        new = [one() for _ in range(60)]
        shown = [record.corrected(told(p.play_s, p.play_late_s)) for p in new]
        seen = [replace(p, late_s=s.late_s) for p, s in zip(new, shown, strict=True)] + seen
        record = learned(seen)
    later = [one() for _ in range(2000)]
    shown = [record.corrected(told(p.play_s, p.play_late_s)) for p in later]
    right = sum((p.waited_s or 0.0) <= (s.late_s or 0.0) for p, s in zip(later, shown, strict=True))
    assert 0.86 <= right / 2000 <= 0.94
    half = sum((p.waited_s or 0.0) <= (s.in_s or 0.0) for p, s in zip(later, shown, strict=True))
    assert 0.42 <= half / 2000 <= 0.58


def test_who_still_waits_after_the_late_end_counts_as_missed() -> None:
    good = [a_past(600.0, 600.0)] * 30
    overdue = [a_past(600.0, None, age=50_000.0)] * 10
    assert (learned(good + overdue).all.stretch or 0.0) > 10 * (learned(good).all.stretch or 0.0) + 1.0
    found = figures(good + overdue)
    assert (found.count, found.waiting, found.within_late) == (40, 10, 0.75)
    assert figures([*good, a_past(600.0, None, age=10.0)]).within_late == 1.0, "it is not late yet"


def test_figures_of_a_small_record_by_hand() -> None:
    past = [a_past(100.0, 90.0, 200.0), a_past(100.0, 150.0, 200.0), a_past(5000.0, 10_000.0, 6000.0)]
    found = figures(past)
    assert (found.within_half, found.within_late) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert (found.error_s, found.relative) == (50.0, pytest.approx(1 / 3))
    assert [(name, group.count) for name, group in by_ahead(past)] == [("up to 2 min", 2), ("1 to 6 h", 1)]
    nobody = figures([])
    assert (nobody.count, nobody.within_late, nobody.error_s) == (0, None, None)


@settings(max_examples=examples(100), deadline=None)
@given(
    past=st.lists(st.tuples(st.floats(0, 1e6), st.floats(1, 5), st.none() | st.floats(0, 1e6)), max_size=60),
    in_s=st.floats(0, 1e6),
    wide=st.floats(1, 4),
    keeps=st.booleans(),
)
def test_what_holds_of_every_correction(
    past: list[tuple[float, float, float | None]], in_s: float, wide: float, keeps: bool
) -> None:
    record = learned([a_past(play, waited, play * more, age=waited or 0.0) for play, more, waited in past])
    shown = record.corrected(told(in_s, in_s * wide, keeps=keeps))
    assert shown.in_s is not None
    assert shown.late_s is not None
    assert 0.0 <= shown.in_s <= shown.late_s
    if keeps:
        assert shown.in_s <= in_s, "a plan that is kept is never foretold later"
        assert shown.at == 1000.0 + in_s


def test_where_nothing_is_told_nothing_is_corrected() -> None:
    none = PlannedStart("", (), None, None, why_none="#90 has no end.")
    assert Record().corrected(none) is none


def test_what_counts_as_moved() -> None:
    assert not moved(600.0, 620.0)
    assert moved(600.0, 640.0)
    assert moved(None, 600.0)
    assert not moved(None, None)
    assert not moved_far(600.0, 890.0)
    assert moved_far(600.0, 950.0)


def test_no_record_makes_a_start_earlier_than_it_may_be() -> None:
    record = learned([a_past(600.0, 30.0, sure="limit")] * 50)
    assert (record.corrected(told(86_400.0, sure="limit")).in_s or 0.0) < 20_000.0
    shown = record.corrected(told(86_400.0, sure="limit"), 86_400.0)
    assert shown.in_s == 86_400.0
    assert 86_400.0 <= (shown.late_s or 0.0) <= 86_400.0 + 60.0, "a time that is set is no forecast, and as sure"


@given(in_s=st.floats(0.0, 1e6), soonest=st.floats(0.0, 1e6), ratio=st.floats(0.01, 10.0), keeps=st.booleans())
def test_never_before_the_soonest_second(in_s: float, soonest: float, ratio: float, keeps: bool) -> None:
    record = learned([a_past(600.0, 600.0 * ratio, sure="limit")] * 50)
    shown = record.corrected(told(in_s, keeps=keeps, sure="limit"), soonest)
    assert (shown.in_s or 0.0) >= min(soonest, in_s) * (1 - 1e-9)
    assert (shown.late_s or 0.0) >= (shown.in_s or 0.0) * (1 - 1e-9)
