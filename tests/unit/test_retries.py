"""Which ends are followed by another try, how long after; and three fast failures in a row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.domain.ending.retries import REPEATABLE, Policy, from_json, to_json, too_small
from placement.domain.ending.streaks import Run, streak, why
from placement.domain.jobs import Outcome
from placement.domain.submitting.arrays import list_with_index, looked_at, with_index


def test_the_wait_doubles_up_to_a_cap() -> None:
    policy = Policy(9, wait_s=30, longest_s=200)
    assert [policy.delay(n) for n in (1, 2, 3, 4, 5, 99)] == [30, 60, 120, 200, 200, 200]
    assert Policy(1, wait_s=0).delay(5) == 0
    assert Policy(1, wait_s=7200).delay(2) == 7200  # a first wait above the cap is meant


@given(st.builds(Policy, st.integers(1, 20)), st.sampled_from(Outcome), st.integers(0, 30))
def test_no_try_beyond_the_number_and_never_after_a_cancel(policy: Policy, outcome: Outcome, number: int) -> None:
    followed = policy.covers(outcome, number)
    assert not (followed and number >= policy.times)
    assert not (followed and outcome not in REPEATABLE)
    assert not policy.covers(Outcome.CANCELLED, 0)
    assert not Policy(3, on=(Outcome.CANCELLED, Outcome.COMPLETED)).covers(Outcome.CANCELLED, 0)


@given(st.integers(1, 9), st.lists(st.sampled_from(REPEATABLE), min_size=1, unique=True), st.floats(0, 1e5))
def test_a_policy_is_what_its_row_keeps(times: int, on: list[Outcome], wait: float) -> None:
    policy = Policy(times, tuple(on), wait)
    assert from_json(to_json(policy)) == policy


def test_no_policy_is_an_empty_row() -> None:
    assert to_json(None) == {} == to_json(Policy(0))
    assert from_json({}) is None
    assert from_json({"times": 0}) is None


@pytest.mark.parametrize(
    ("need", "at_least", "charged", "small"),
    [
        (9, None, 8, False),
        (8, None, 8, True),
        (None, 9, 8, False),
        (None, 8, 8, True),
        (None, None, 8, True),
        (4, None, None, False),
    ],
)
def test_after_a_memory_death_the_same_charge_is_too_small(
    need: int | None, at_least: int | None, charged: int | None, small: bool
) -> None:
    assert too_small(need, at_least, charged) is small


def runs(*told: tuple[Outcome, float | None]) -> list[Run]:
    """Return runs as they ended, newest first."""
    made = [Run(job, outcome, seconds, code=1) for job, (outcome, seconds) in enumerate(told, 1)]
    return made[::-1]


FAST, SLOW, GOOD = (Outcome.FAILED, 2.0), (Outcome.FAILED, 60.0), (Outcome.COMPLETED, 2.0)


@pytest.mark.parametrize(
    ("told", "held"),
    [
        pytest.param((FAST, FAST, FAST), True, id="three in a row"),
        pytest.param((GOOD, FAST, FAST, FAST), True, id="a success before them"),
        pytest.param((FAST, FAST), False, id="two"),
        pytest.param((FAST, GOOD, FAST, FAST), False, id="a success between"),
        pytest.param((FAST, FAST, FAST, GOOD), False, id="a success after"),
        pytest.param((FAST, SLOW, FAST), False, id="one of them was slow"),
        pytest.param((FAST, FAST, (Outcome.CANCELLED, 1.0), FAST), True, id="a cancel says nothing"),
        pytest.param((FAST, (Outcome.START_FAILED, None), FAST), True, id="one could not start"),
        pytest.param((FAST, FAST, (Outcome.OUT_OF_MEMORY, 1.0)), False, id="memory is another matter"),
    ],
)
def test_a_streak(told: tuple[tuple[Outcome, float | None], ...], held: bool) -> None:
    assert bool(streak(runs(*told), 3, 10)) is held


def test_a_count_of_zero_never_holds() -> None:
    assert streak(runs(FAST, FAST, FAST), 0, 10) == ()


def test_why_names_the_runs_and_their_codes() -> None:
    found = streak(runs(FAST, (Outcome.START_FAILED, None), FAST), 3, 10)
    told = why((found[0], Run(2, Outcome.FAILED, 1, signal=11), Run(3, Outcome.START_FAILED)), 10)
    assert told == (
        "#1 (code 1), #2 (signal 11) and #3 (could not start) of this group failed within 10 s of their start, "
        "one after the other"
    )
    assert len(why([Run(10**15 + i, Outcome.FAILED, 1, code=1) for i in range(60)], 10)) <= 200


def test_the_index_is_put_where_it_is_named_and_the_shells_own_stays() -> None:
    assert with_index("fit {index} of ${index} {other}", 4) == "fit 4 of ${index} {other}"
    assert list_with_index(["a", "{index}"], 0) == ["a", "0"]
    assert looked_at(None) == 100
    assert looked_at(500) == 500
