"""How long a run still takes, and how sure that is."""

from __future__ import annotations

import pytest

from placement.domain.durations import Sure, remaining
from placement.domain.knobs import Knobs


@pytest.mark.parametrize(
    ("elapsed", "limit", "learned", "bar", "forecast", "sure"),
    [
        pytest.param(40.0, 100.0, 70.0, 60.0, 60.0, Sure.LIMIT, id="its limit comes first"),
        pytest.param(40.0, None, 70.0, 30.0, 30.0, Sure.LEARNED, id="then what was learned"),
        pytest.param(600.0, None, None, 3000.0, 3000.0, Sure.GUESS, id="then an hour"),
        pytest.param(100.0, None, 100.0, 0.0, 20.0, Sure.GUESS, id="overdue: a fifth more is shown, the bar stays"),
        pytest.param(200.0, None, 100.0, 0.0, 20.0, Sure.GUESS, id="just twice its prediction"),
        pytest.param(200.1, None, 100.0, None, None, Sure.LEARNED, id="past twice: no end"),
    ],
)
def test_remaining(
    elapsed: float, limit: float | None, learned: float | None, bar: float | None, forecast: float | None, sure: Sure
) -> None:
    found = remaining(elapsed, limit, learned, Knobs())
    assert (found.bar, found.forecast, found.sure) == (bar, forecast, sure)


def test_a_chain_is_as_sure_as_its_weakest_part() -> None:
    assert min(Sure.LIMIT, Sure.LEARNED).word == "learned"
    assert min(Sure.LEARNED, Sure.GUESS).word == "guess"
