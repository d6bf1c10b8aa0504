"""How often something is repeated when many ask for it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from placement.domain.pace import Pace


def test_whoever_comes_alone_never_waits() -> None:
    pace = Pace(share=0.25, credit=0.2, longest=0.5)
    for second in range(10):
        assert pace.wait(float(second)) == 0.0
        pace.spent(0.05, second + 0.05)


def test_in_a_crowd_the_credit_goes_first_then_the_share_is_kept() -> None:
    pace = Pace(share=0.25, credit=0.2, longest=0.5)
    now, waits = 0.0, []
    for _ in range(10):
        waits.append(pace.wait(now))
        now += waits[-1] + 0.1
        pace.spent(0.1, now)
    assert waits[:2] == [0.0, 0.0]
    assert all(0.2 < wait <= 0.5 for wait in waits[4:])


def test_one_that_took_very_long_is_not_paid_for_for_ever() -> None:
    pace = Pace(share=0.25, credit=0.2, longest=0.5)
    pace.spent(60.0, 60.0)
    assert pace.wait(60.0) == 0.5
    assert pace.wait(60.5) == 0.0


def test_a_clock_that_stands_gives_nothing_back() -> None:
    pace = Pace(share=0.5, credit=0.0, longest=1.0)
    pace.spent(0.1, 5.0)
    assert pace.wait(5.0) == pace.wait(4.0) == 0.2


@settings(deadline=None)
@given(costs=st.lists(st.floats(0.001, 0.2), min_size=20, max_size=60))
def test_of_a_long_crowd_no_more_than_the_share_is_spent(costs: list[float]) -> None:
    pace = Pace(share=0.25, credit=0.2, longest=100.0)
    now = 0.0
    for cost in costs:
        now += pace.wait(now) + cost
        pace.spent(cost, now)
    now += pace.wait(now)
    assert sum(costs) <= 0.2 + 0.25 * now + 1e-6
