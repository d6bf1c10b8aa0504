"""Forecasts of jobs that wait for more than room: other jobs, a time, an array's turn, a quota."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.domain.admission.decision import PlannedStart
from placement.domain.forecasting.forecast import soonest
from placement.domain.forecasting.told import predicted
from placement.domain.jobs import Outcome, State
from placement.domain.planning.plan import plan
from placement.domain.world.conditions import After, Conditions, Quota, Tie
from placement.domain.world.snapshot import Running, Waiting
from tests.builders import GIB, a_device, a_node, a_running, a_snapshot, a_waiting
from tests.examples import examples

WALL = 1_700_000_000.0  # of the builders' snapshots


def starts(*waiting: Waiting, running: tuple[Running, ...] = (), used: int = 0) -> dict[int, PlannedStart]:
    node = a_node(a_device(24 * GIB, used))
    return dict(predicted(plan(a_snapshot(node, running=running, waiting=waiting))))


def a_tied(job: int, *ties: Tie, limit: float = 10.0) -> Waiting:
    return a_waiting(job, GIB, limit=limit, conditions=Conditions(after=ties))


def test_not_before_a_time_it_is_expected_at_that_time() -> None:
    told = starts(a_waiting(1, GIB, conditions=Conditions(not_before=WALL + 900.0)))[1]
    assert (told.in_s, told.late_s, told.sure) == (900.0, 900.0, "limit")


def test_after_a_running_job_it_starts_at_its_end() -> None:
    running = (a_running(90, 20 * GIB, 20 * GIB, elapsed=0.0, limit=300.0),)
    told = starts(a_tied(1, Tie(90, After.OK, State.RUNNING)), running=running, used=20 * GIB)[1]
    assert (told.in_s, told.sure, told.waits_for) == (300.0, "limit", (90,))


def test_a_chain_is_as_long_as_its_jobs() -> None:
    queue = (
        a_waiting(1, 24 * GIB, limit=100.0),
        a_tied(2, Tie(1, After.ANY, State.QUEUED), limit=50.0),
        a_tied(3, Tie(2, After.OK, State.QUEUED)),
    )
    running = (a_running(90, 20 * GIB, 20 * GIB, elapsed=0.0, limit=300.0),)
    found = starts(*queue, running=running, used=20 * GIB)
    assert [found[n].in_s for n in (1, 2, 3)] == [300.0, 400.0, 450.0]


def test_after_two_it_is_the_later_one() -> None:
    running = tuple(a_running(90 + n, GIB, GIB, elapsed=0.0, limit=limit) for n, limit in enumerate((300.0, 700.0)))
    ties = (Tie(90, After.OK, State.RUNNING), Tie(91, After.OK, State.RUNNING))
    told = starts(a_tied(1, *ties), running=running, used=2 * GIB)[1]
    assert told.in_s == 700.0


def test_after_one_of_which_nobody_can_tell_it_says_so() -> None:
    queue = (a_waiting(1, 80 * GIB), a_tied(2, Tie(1, After.OK, State.QUEUED)))
    told = starts(*queue)[2]
    assert told.in_s is None
    assert told.why_none == "It waits for the end of #1, and when that is cannot be told."


def test_whether_another_fails_nobody_can_tell() -> None:
    running = (a_running(90, GIB, GIB, elapsed=0.0, limit=300.0),)
    told = starts(a_tied(1, Tie(90, After.FAILED, State.RUNNING)), running=running, used=GIB)[1]
    assert (told.in_s, told.why_none) == (None, "It starts only if #90 fails.")


def test_what_can_never_start_any_more_is_told_why() -> None:
    told = starts(a_tied(1, Tie(90, After.OK, State.FINISHED, Outcome.FAILED)))[1]
    assert told.in_s is None
    assert "can never start" in told.why_none


def test_an_array_goes_on_as_its_members_end() -> None:
    limited = Conditions(array=7, array_limit=2)
    running = tuple(a_running(90 + n, GIB, GIB, elapsed=0.0, limit=100.0, array=7) for n in (0, 1))
    queue = tuple(a_waiting(n, GIB, limit=60.0, conditions=limited) for n in range(1, 6))
    found = starts(*queue, running=running, used=2 * GIB)
    assert [found[n].in_s for n in range(1, 6)] == [100.0, 100.0, 160.0, 160.0, 220.0]


@pytest.mark.parametrize(
    "quota", [Quota("alice", jobs=1), Quota("alice", vram=3 * GIB)], ids=["of jobs", "of device memory"]
)
def test_a_quota_is_waited_for(quota: Quota) -> None:
    running = (a_running(90, 2 * GIB, 2 * GIB, elapsed=0.0, limit=100.0),)
    queue = tuple(a_waiting(n, 2 * GIB, limit=50.0, conditions=Conditions(quota=quota)) for n in (1, 2))
    found = starts(*queue, running=running, used=2 * GIB)
    assert [found[n].in_s for n in (1, 2)] == [100.0, 150.0]


def test_who_is_under_no_cap_passes_those_who_are() -> None:
    limited = Conditions(array=7, array_limit=1)
    running = (
        a_running(90, 2 * GIB, 2 * GIB, elapsed=0.0, limit=100.0, array=7),
        a_running(91, 20 * GIB, 20 * GIB, elapsed=0.0, limit=30.0),
    )
    queue = (a_waiting(1, 4 * GIB, limit=50.0, conditions=limited), a_waiting(2, 4 * GIB, limit=50.0))
    found = starts(*queue, running=running, used=22 * GIB)
    assert [found[n].in_s for n in (1, 2)] == [100.0, 30.0]


@settings(max_examples=examples(80), deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 24), st.sampled_from([20.0, 100.0]), st.none() | st.floats(0, 500), st.booleans()),
        min_size=1,
        max_size=7,
    )
)
def test_nobody_is_foretold_before_their_time_or_before_whom_they_wait_for(
    jobs: list[tuple[int, float, float | None, bool]],
) -> None:
    queue = tuple(
        a_waiting(
            n,
            size * GIB,
            limit=limit,
            conditions=Conditions(
                not_before=None if later is None else WALL + later,
                after=(Tie(n - 1, After.ANY, State.QUEUED),) if tied and n > 1 else (),
            ),
        )
        for n, (size, limit, later, tied) in enumerate(jobs, 1)
    )
    made = plan(a_snapshot(a_node(a_device(24 * GIB)), waiting=queue))
    found = predicted(made)
    at_once = {d.job for d in made.starts}
    for n, (_, _, later, tied) in enumerate(jobs, 1):
        if n in at_once:
            continue
        told = found[n]
        assert told.in_s is not None, "nothing here is without an end"
        assert told.in_s >= (later or 0.0) - 1e-6
        if tied and n > 1:
            before = 0.0 if n - 1 in at_once else found[n - 1].in_s
            assert before is not None
            assert told.in_s >= before + jobs[n - 2][1] - 1e-6


def test_who_finds_room_at_its_time_has_waited_for_nobodys_end() -> None:
    running = (a_running(90, GIB, GIB, elapsed=0.0, limit=300.0), a_running(91, GIB, GIB, elapsed=0.0, limit=400.0))
    queue = (
        a_waiting(1, GIB, conditions=Conditions(not_before=WALL + 900.0)),
        a_tied(2, Tie(91, After.OK, State.RUNNING)),
    )
    found = starts(*queue, running=running, used=2 * GIB)
    assert [found[n].waits_for for n in (1, 2)] == [(), (91,)]


def test_the_soonest_second_is_that_of_whom_one_waits_for_too() -> None:
    queue = (
        a_waiting(1, GIB, conditions=Conditions(not_before=WALL + 900.0)),
        a_tied(2, Tie(1, After.OK, State.QUEUED)),
        a_tied(3, Tie(2, After.ANY, State.QUEUED), Tie(4, After.ANY, State.FINISHED, Outcome.COMPLETED)),
        a_waiting(5, GIB, conditions=Conditions(not_before=WALL - 1.0)),
        a_waiting(6, GIB),
    )
    assert soonest(queue, WALL) == {1: 900.0, 2: 900.0, 3: 900.0}
