from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.domain.login_wait import LONGEST_WAIT, seconds_to_wait


@pytest.mark.parametrize(
    ("failures", "now", "wait"),
    [
        pytest.param([], 0, 0, id="nobody failed"),
        pytest.param([0, 1, 2, 3], 4, 0, id="four are forgiven"),
        pytest.param([0, 1, 2, 3, 4], 4, 15, id="the fifth waits"),
        pytest.param([0, 1, 2, 3, 4], 19, 0, id="until its time is over"),
        pytest.param([4, 0, 3, 1, 2], 9, 10, id="in any order"),
        pytest.param([0, 1, 2, 3, 4, 20], 20, 30, id="the sixth twice as long"),
        pytest.param([0, 80, 160, 240, 301], 301, 0, id="five in more than five minutes are forgiven"),
        pytest.param([0, 1, 2, 3, 4, 400], 400, 0, id="quiet forgets the series"),
        pytest.param([0, 1, 2, 3, 9999], 4, 0, id="a failure in the future is none"),
    ],
)
def test_how_long(failures: list[float], now: float, wait: float) -> None:
    assert seconds_to_wait(failures, now) == wait


@settings(max_examples=100)
@given(st.lists(st.floats(0, 86_400), max_size=60), st.floats(0, 90_000))
def test_it_never_waits_longer_than_the_longest_wait(failures: list[float], now: float) -> None:
    assert 0 <= seconds_to_wait(failures, now) <= LONGEST_WAIT


def test_somebody_who_goes_on_ends_at_the_longest_wait() -> None:
    at, failures = 0.0, [0.0, 1.0, 2.0, 3.0, 4.0]
    for _ in range(12):
        at = failures[-1] + seconds_to_wait(failures, failures[-1])
        failures.append(at)

    assert seconds_to_wait(failures, at) == LONGEST_WAIT
