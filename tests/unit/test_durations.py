"""How long a run still takes, and how sure that is."""

from __future__ import annotations

import pytest

from placement.domain.knobs import Knobs
from placement.domain.world.durations import Length, Sure, changes_at, remaining

SEEN = (10.0, 20.0, 300.0, 400.0, 500.0)


@pytest.mark.parametrize(
    ("elapsed", "limit", "learned", "seen", "left", "sure"),
    [
        pytest.param(40.0, 100.0, 70.0, (), 60.0, Sure.LIMIT, id="its limit comes first"),
        pytest.param(40.0, None, 70.0, (), 30.0, Sure.LEARNED, id="then what was learned"),
        pytest.param(600.0, None, None, (), 3000.0, Sure.GUESS, id="then an hour"),
        pytest.param(100.0, None, 100.0, (), 20.0, Sure.GUESS, id="overdue: a fifth more"),
        pytest.param(119.0, None, 100.0, (), 1.0, Sure.GUESS, id="and then"),
        pytest.param(120.5, None, 100.0, (), 23.5, Sure.GUESS, id="another fifth of that"),
        pytest.param(130.0, 125.0, 100.0, (), 0.0, Sure.GUESS, id="but no longer than its limit"),
        pytest.param(0.0, None, 500.0, SEEN, 300.0, Sure.LEARNED, id="three of five took no longer"),
        pytest.param(50.0, None, 500.0, SEEN, 350.0, Sure.LEARNED, id="of those that took longer than it has run"),
        pytest.param(50.0, 200.0, 500.0, SEEN, 150.0, Sure.LIMIT, id="up to its limit"),
        pytest.param(510.0, None, 500.0, SEEN, 90.0, Sure.GUESS, id="it outlasted them all"),
    ],
)
def test_remaining(
    elapsed: float, limit: float | None, learned: float | None, seen: tuple[float, ...], left: float, sure: Sure
) -> None:
    found = remaining(elapsed, limit, learned, Knobs(plan_quantile=0.6, overdue_share=0.2), seen)
    assert (found.bar, found.sure) == (pytest.approx(left), sure)


@pytest.mark.parametrize("seen", [(), SEEN])
@pytest.mark.parametrize("elapsed", [0.0, 5.0, 99.0, 100.0, 131.0, 499.0, 700.0])
def test_between_changes_the_expected_end_stands(elapsed: float, seen: tuple[float, ...]) -> None:
    knobs = Knobs()
    until = changes_at(elapsed, None, 100.0, knobs, seen)
    assert until > elapsed
    ends = {
        round(
            elapsed
            + part * (until - elapsed)
            + remaining(elapsed + part * (until - elapsed), None, 100.0, knobs, seen).bar,
            6,
        )
        for part in (0.0, 0.3, 0.999)
    }
    assert len(ends) == 1


def test_a_chain_is_as_sure_as_its_weakest_part() -> None:
    assert min(Sure.LIMIT, Sure.LEARNED).word == "learned"
    assert min(Sure.LEARNED, Sure.GUESS).word == "guess"


@pytest.mark.parametrize(
    ("length", "elapsed", "sure"),
    [
        (Length(None, 100.0), 99.0, Sure.LEARNED),
        (Length(None, 100.0), 100.0, Sure.GUESS),
        (Length(None, 90.0, (80.0, 100.0)), 99.0, Sure.LEARNED),
        (Length(None, 90.0, (80.0, 100.0)), 100.0, Sure.GUESS),
        (Length(500.0, 90.0, (80.0, 100.0)), 100.0, Sure.LIMIT),
        (Length(500.0, None), 600.0, Sure.LIMIT),
        (Length(None, None), 0.0, Sure.GUESS),
    ],
)
def test_who_outlasts_what_was_seen_stands_on_the_limit_or_is_a_guess(
    length: Length, elapsed: float, sure: Sure
) -> None:
    assert length.sure(elapsed) is sure
