"""What would start a waiting job. Whatever is offered has to be true: the next cycle after its steps starts the job."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.domain.estimate import Basis
from placement.domain.jobs import Outcome, State
from placement.domain.knobs import Knobs
from placement.domain.planning.plan import plan
from placement.domain.unblocking.changes import Comes, Ends, Met, Opened, Released, after
from placement.domain.unblocking.remedies import Remedy, remedies
from placement.domain.world.conditions import After, Conditions, Quota, Tie
from placement.domain.world.requests import Exclusive
from placement.domain.world.snapshot import Hold, Snapshot
from tests.builders import GIB, MIB, a_device, a_node, a_ram, a_running, a_snapshot, a_waiting, an_estimate
from tests.examples import examples

WALL = 1_700_000_000.0
HOLD = Hold("olga", WALL - 60)


def holds(snapshot: Snapshot, job: int, remedy: Remedy) -> bool:
    """Return whether the next cycle after the steps starts the job, on the place that was told."""
    grant = plan(after(snapshot, job, remedy.steps)).grants.get(job)
    return grant is not None and (grant.node, grant.device) == (remedy.node, remedy.device)


def told(snapshot: Snapshot, job: int = 9, **more: Any) -> tuple[Remedy, ...]:
    found = remedies(snapshot, job, **more)
    assert all(holds(snapshot, job, one) for one in found)
    return found


def crowded(*waiting, **more: Any) -> Snapshot:
    """Return 2 GiB of room on gpu0, where #41 and #40 run, and 6 on gpu1, where #38 runs."""
    node = a_node(a_device(24 * GIB, 22 * GIB), a_device(24 * GIB, 18 * GIB, index=1), **more.pop("of_node", {}))
    running = (
        a_running(38, 18 * GIB, 18 * GIB, device=1, elapsed=0.0, limit=7200.0),
        a_running(40, 11 * GIB, 11 * GIB, elapsed=60.0, limit=3660.0),
        a_running(41, 11 * GIB, 11 * GIB, elapsed=0.0, limit=600.0),
    )
    return a_snapshot(node, running=running, waiting=waiting, **more)


def test_the_fewest_that_have_to_end_are_told_for_each_place_and_the_soonest_first():
    first, second = told(crowded(a_waiting(9, 8 * GIB)))
    assert (first.ends, first.device, first.gives, first.in_s) == ((41,), "GPU-0", 11 * GIB, 600.0)
    assert (second.ends, second.device, second.in_s) == ((38,), "GPU-1", 7200.0)


def test_two_that_have_to_end_together_are_told_together():
    one, other = told(crowded(a_waiting(9, 20 * GIB)))
    assert (set(one.ends), one.in_s, one.gives) == ({40, 41}, 3600.0, 22 * GIB)
    assert other.ends == (38,)


def test_fewer_workers_that_fit_at_once_are_told_with_what_they_need():
    def for_workers(count: int):
        return an_estimate(count * 1200 * MIB)

    found = told(crowded(a_waiting(9, 8 * 1200 * MIB, workers=8)), for_workers=for_workers)
    (edit,) = [one for one in found if one.edit]
    assert (edit.edit.workers, edit.need, edit.place) == (5, 6000 * MIB, "gpu1")  # six would be 7.0 GiB


def test_a_smaller_declaration_is_told_only_where_the_charge_stands_on_one():
    def declaring(kind: str, amount: int):
        return an_estimate(amount, basis=Basis.DECLARED)

    declared = a_waiting(9, 9 * GIB, basis=Basis.DECLARED)
    (edit,) = [one for one in told(crowded(declared), declaring=declaring) if one.edit]
    assert edit.edit.declared == {"vram": 6 * GIB}
    measured = crowded(a_waiting(9, 9 * GIB))
    assert not [one for one in told(measured, declaring=declaring) if one.edit]


def test_beside_others_and_on_any_device():
    alone = told(crowded(a_waiting(9, 4 * GIB, exclusive=Exclusive.DEVICE)))
    assert [one.edit.beside for one in alone if one.edit] == [True]
    named = told(crowded(a_waiting(9, 4 * GIB, device="GPU-0")))
    assert [(one.edit.anywhere, one.device) for one in named if one.edit] == [(True, "GPU-1")]


def test_a_time_limit_with_which_it_is_over_before_an_older_plan():
    older, short = a_waiting(8, 23 * GIB), a_waiting(9, 2 * GIB, device="GPU-0")

    def limits(mine):
        return [one.edit.limit for one in told(crowded(older, mine)) if one.edit and one.edit.limit]

    assert limits(short) == [3540.0]  # #8 is planned there in an hour, when both have ended
    assert limits(replace(short, learned=9000.0)) == []  # it would only be cut off


def test_what_stands_against_the_job_itself_comes_first_and_then_who_has_to_end():
    tie = Tie(41, After.OK, State.RUNNING)
    waiting = a_waiting(9, 12 * GIB, hold=HOLD, conditions=Conditions(after=(tie,), not_before=WALL + 90))
    first = told(crowded(waiting))[0]
    assert [type(step) for step in first.steps] == [Released, Comes, Met]  # with #41 its memory comes back
    assert first.in_s is None  # somebody has to release it
    room = a_waiting(9, 20 * GIB, hold=HOLD)
    assert [type(step) for step in told(crowded(room))[0].steps] == [Released, Ends]


def test_a_time_and_a_hold_with_an_end_come_by_themselves():
    waiting = a_waiting(9, GIB, hold=replace(HOLD, until=WALL + 30), conditions=Conditions(not_before=WALL + 90))
    (one,) = told(crowded(waiting))
    assert one.in_s == 90.0


def test_a_held_queue_a_held_device_and_a_drained_node_are_named():
    assert told(crowded(a_waiting(9, GIB), queue_hold=HOLD))[0].steps == (Released("queue", "olga"),)
    held = a_snapshot(a_node(a_device(hold=HOLD)), waiting=(a_waiting(9, GIB),))
    assert told(held)[0].steps == (Released("device", "olga", None, "atlas", "GPU-0", "gpu0"),)
    drained = a_snapshot(a_node(a_device(), state="draining"), waiting=(a_waiting(9, GIB),))
    assert told(drained)[0].steps == (Opened("atlas", None, "atlas"),)


def test_an_arrays_turn_and_a_quota_name_who_has_to_end():
    node = a_node(a_device())
    member = a_running(7, GIB, GIB, array=5, elapsed=0.0, limit=60.0)
    array = a_waiting(9, GIB, conditions=Conditions(array=5, array_limit=1))
    assert told(a_snapshot(node, running=(member,), waiting=(array,)))[0].ends == (7,)
    two = (member, a_running(8, 4 * GIB, GIB, elapsed=0.0, limit=30.0))
    quota = a_waiting(9, 2 * GIB, conditions=Conditions(quota=Quota("alice", vram=6 * GIB)))
    (one,) = told(a_snapshot(node, running=two, waiting=(quota,)))
    assert (one.ends, one.in_s) == ((8,), 30.0)


@pytest.mark.parametrize(
    "waiting",
    [
        a_waiting(9, GIB, no_account="alice has no account."),
        a_waiting(9, GIB, conditions=Conditions(after=(Tie(3, After.OK, State.FINISHED, Outcome.FAILED),))),
        a_waiting(9, 90 * GIB),
        a_waiting(9, 4 * GIB, conditions=Conditions(quota=Quota("alice", vram=GIB))),
    ],
)
def test_what_nothing_of_this_kind_would_start_is_offered_nothing(waiting):
    assert told(crowded(waiting)) == ()


def test_a_job_that_starts_by_itself_in_the_next_cycle_needs_nothing():
    (one,) = told(crowded(a_waiting(9, GIB)))
    assert (one.steps, one.in_s) == ((), 0.0)


def test_memory_that_an_older_job_would_take_first_is_not_promised():
    older = a_waiting(8, 20 * GIB)
    found = told(crowded(older, a_waiting(9, 13 * GIB)))
    assert (41,) not in [one.ends for one in found]


sizes = st.integers(1, 24)


@st.composite
def worlds(draw) -> tuple[Snapshot, int]:
    """Return a machine with anything that can be in a waiting job's way, and one of the jobs that wait."""
    devices, running, job = [], [], 100
    for index in range(draw(st.integers(1, 3))):
        used = 0
        for _ in range(draw(st.integers(0, 3))):
            granted, now = draw(sizes), draw(st.integers(0, 8))
            job, used = job + 1, used + now
            more = {
                "cold": draw(st.integers(0, 5)) == 0,
                "exclusive": draw(st.sampled_from([Exclusive.NO] * 4 + [Exclusive.DEVICE])),
                "array": draw(st.integers(0, 1)),
                "margins": {f"GPU-{index}": draw(st.integers(0, 2)) * GIB},
                "limit": float(draw(st.integers(10, 5000))),
                "elapsed": float(draw(st.integers(0, 9))),
            }
            hidden = draw(st.integers(0, 6)) == 0
            ram = draw(st.integers(0, 12)) * GIB
            running.append(
                a_running(
                    job, granted * GIB, None if hidden else now * GIB, device=index, ram=ram, ram_used=ram, **more
                )
            )
        extra = draw(st.integers(0, 6))
        state = draw(st.sampled_from([{}, {}, {}, {"hold": HOLD}, {"draining": True}, {"exclusive_only": True}]))
        devices.append(a_device(24 * GIB, min(24, used + extra) * GIB, index=index, **state))
    ram = sum(r.charges["ram"].used or 0 for r in running)
    of_node = draw(st.sampled_from([{}, {}, {"hold": HOLD}, {"state": "draining"}, {"ram_pressure": True}]))
    node = a_node(*devices, ram=a_ram(64 * GIB, min(64 * GIB, ram + 2 * GIB)), **of_node)
    waiting = []
    for number in range(1, draw(st.integers(1, 4)) + 1):
        by = Conditions(
            after=draw(st.sampled_from([(), (), (Tie(101, After.ANY, State.RUNNING),)])),
            not_before=draw(st.sampled_from([None, None, WALL + 50])),
            array=draw(st.integers(0, 1)),
            array_limit=draw(st.sampled_from([None, 1, 2])),
            quota=draw(st.sampled_from([None, Quota("alice", jobs=3), Quota("alice", vram=30 * GIB)])),
        )
        waiting.append(
            a_waiting(
                number,
                draw(st.one_of(st.none(), sizes.map(lambda n: n * GIB))),
                draw(st.integers(0, 30)) * GIB,
                margin=draw(st.integers(0, 2)) * GIB,
                workers=draw(st.integers(1, 6)),
                basis=draw(st.sampled_from([Basis.MEASURED, Basis.DECLARED])),
                exclusive=draw(st.sampled_from(list(Exclusive) + [Exclusive.NO] * 4)),
                device=draw(st.sampled_from([None, None, "GPU-0"])),
                hold=draw(st.sampled_from([None, None, None, HOLD])),
                conditions=draw(st.sampled_from([None, by])),
            )
        )
    queue_hold = draw(st.sampled_from([None, None, None, None, HOLD]))
    snapshot = a_snapshot(
        node, running=tuple(running), waiting=tuple(waiting), knobs=Knobs(), queue_hold=queue_hold, at=1e6
    )
    return snapshot, draw(st.integers(1, len(waiting)))


@settings(max_examples=examples(300), deadline=None)
@given(worlds())
def test_every_remedy_holds(world: tuple[Snapshot, int]) -> None:
    snapshot, job = world
    mine = next(w for w in snapshot.waiting if w.job == job)
    need = mine.estimate.pools["vram"].need or GIB

    def for_workers(count: int):
        return an_estimate(max(1, need * count // mine.workers), GIB, margin=GIB)

    def declaring(kind: str, amount: int):
        vram, ram = (amount, GIB) if kind == "vram" else (need, amount)
        return an_estimate(vram, ram, basis=Basis.DECLARED, margin=amount // 5)

    for one in remedies(snapshot, job, for_workers, declaring):
        assert holds(snapshot, job, one), one
