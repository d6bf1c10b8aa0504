"""The moves between states: a table, and nothing beside it."""

from __future__ import annotations

import itertools

import pytest

from placement.domain.jobs import ACTIVE, MOVES, State, may_move


@pytest.mark.parametrize(("before", "after"), list(itertools.product(State, State)))
def test_only_moves_of_the_table_are_allowed(before: State, after: State) -> None:
    assert may_move(before, after) is ((before, after) in MOVES)


def test_nothing_leaves_finished_and_everything_else_can_reach_it() -> None:
    assert not [move for move in MOVES if move[0] is State.FINISHED]
    assert {before for before, after in MOVES if after is State.FINISHED} == set(State) - {State.FINISHED}


def test_a_job_that_runs_is_never_queued_again() -> None:
    assert not may_move(State.RUNNING, State.QUEUED)
    assert may_move(State.ADMITTED, State.QUEUED)


def test_active_jobs_are_those_that_hold_memory() -> None:
    assert set(ACTIVE) == {State.ADMITTED, State.RUNNING}
