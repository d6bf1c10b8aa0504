"""With more than eight devices on a node a group starts, is planned and is possible wherever any set would do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.domain.admission.choosing import best_fit
from placement.domain.admission.demands import waiting_demand
from placement.domain.admission.device_sets import together
from placement.domain.admission.gate import Look, decide, decide_on, look, started
from placement.domain.admission.places import Board, place_of
from placement.domain.planning.bars import Guard, asking, bar_for
from placement.domain.planning.feasibility import could_ever
from placement.domain.planning.plan import plan
from placement.domain.world.requests import Exclusive
from placement.domain.world.snapshot import Device, Hold, KeptPlan, Node, Snapshot, Waiting
from tests.builders import GIB, PoolState, a_device, a_node, a_running, a_snapshot, a_waiting
from tests.examples import examples

OFTEN_NOT = [Exclusive.NO] * 4 + [Exclusive.DEVICE]


@st.composite
def devices(draw: st.DrawFn, index: int) -> Device:
    total = draw(st.sampled_from([24, 24, 24, 16, 48]))
    declared = draw(st.sampled_from([total, total, total - 4, 8]))
    return a_device(
        total * GIB,
        draw(st.integers(0, 5)) * GIB,
        index=index,
        declared=declared * GIB,
        draining=draw(st.integers(0, 9)) == 0,
        exclusive_only=draw(st.integers(0, 9)) == 0,
        hold=draw(st.sampled_from([None] * 9 + [Hold("ann", 0.0)])),
        backend=draw(st.sampled_from(["CUDA"] * 12 + ["ROCM"])),
    )


@st.composite
def groups(draw: st.DrawFn, job: int = 1, most: int = 4) -> Waiting:
    least = draw(st.integers(1, most))
    how = draw(st.sampled_from(["auto", "auto", "cold", "each", "together", "both", "uneven"]))
    each, together = draw(st.integers(1, 24)) * GIB, draw(st.integers(1, 90)) * GIB + draw(st.integers(0, 1))
    return a_waiting(
        job,
        each if how == "auto" else None,
        GIB,
        group=(least, least + draw(st.sampled_from([0, 0, 1, 3, 8]))),
        prefer_max=draw(st.booleans()),
        each=each // 4 if how == "both" else each if how == "each" else None,
        together=together if how in ("together", "both", "uneven") else None,
        even=how != "uneven",
        exclusive=draw(st.sampled_from(OFTEN_NOT)),
        margin=draw(st.sampled_from([0, 0, 3])) * GIB if how == "auto" else 0,
        limit=draw(st.sampled_from([None, 50.0, 500.0])),
    )


@st.composite
def worlds(draw: st.DrawFn, queue: int = 1) -> Snapshot:
    count = draw(st.integers(9, 11))
    node = a_node(*(draw(devices(index)) for index in range(count)))
    running = []
    for n in range(draw(st.integers(0, 12))):
        on = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=2, unique=True))
        more = {
            "others": tuple(on[1:]),
            "exclusive": draw(st.sampled_from(OFTEN_NOT)),
            "cold": draw(st.integers(0, 7)) == 0,
            "limit": draw(st.sampled_from([None, 60.0, 100.0, 700.0])),
            "margins": {f"GPU-{on[0]}": draw(st.sampled_from([0, 2])) * GIB},
        }
        running.append(a_running(100 + n, draw(st.sampled_from([1, 4, 9, 20])) * GIB, 0, device=on[0], **more))
    waiting = tuple(draw(groups(job)) for job in range(1, queue + 1))
    return a_snapshot(node, running=tuple(running), waiting=waiting)


def each_set(board: Board, waiting: Waiting) -> Iterator[Look]:
    """Yield the gate's look at every set of devices that the group may take, however many there are."""
    request, demand = waiting.request, waiting_demand(waiting)
    for node in board.snapshot.nodes:
        for count in range(request.min_devices, min(request.max_devices, len(node.devices)) + 1):
            for some in combinations(node.devices, count):
                if all(together(some[0], device) for device in some):
                    yield look(board, demand, place_of(node, some, board.many))


def twelve(used: Callable[[int], int] = lambda n: 0, **of_each: Callable[[int], object]) -> Node:
    """Return a node of twelve devices of 24 GiB, so much of each used."""
    more = [{name: of(n) for name, of in of_each.items()} for n in range(12)]
    return a_node(*(a_device(24 * GIB, used(n) * GIB, index=n, **more[n]) for n in range(12)))


def test_the_number_of_devices_that_has_room_is_found() -> None:
    node = twelve(lambda n: 24 * (n % 12 >= 7))
    shared = decide(a_snapshot(node), a_waiting(1, None, GIB, group=(2, 12), together=7 * 20 * GIB))
    assert shared.grant is not None
    assert len(shared.grant.devices) == 6
    many = decide(a_snapshot(node), a_waiting(1, 4 * GIB, GIB, group=(2, 12), prefer_max=True))
    assert many.grant is not None
    assert len(many.grant.devices) == 7


def test_devices_that_are_lost_among_the_others_are_passed_over() -> None:
    node = twelve(lambda n: n % 3, state=lambda n: PoolState.LOST if n % 2 else PoolState.OK)
    decision = decide(a_snapshot(node), a_waiting(1, 15 * GIB, GIB, group=(5, 5)))
    assert decision.grant is not None


def test_a_group_is_planned_between_devices_that_are_shut_and_keeps_its_plan() -> None:
    node = twelve(lambda n: 20, draining=lambda n: n % 3 == 2)
    running = tuple(a_running(100 + n, 20 * GIB, 20 * GIB, device=n, limit=50.0 + 10 * (12 - n)) for n in range(12))
    group = a_waiting(1, 20 * GIB, GIB, group=(4, 4))
    made = plan(a_snapshot(node, running=running, waiting=(group,)))
    assert made.bar is not None
    planned = made.bar.look.place.uuids
    assert planned == ("GPU-6", "GPU-7", "GPU-9", "GPU-10")  # those of the soonest ends that are not shut
    free = a_node(
        *(replace(d, pool=replace(d.pool, used=0, free=24 * GIB)) if d.index in (6, 7) else d for d in node.devices)
    )
    left = tuple(r for r in running if r.device not in ("GPU-6", "GPU-7"))
    kept = replace(group, plan=KeptPlan("atlas", planned, made.bar.at))
    young = tuple(a_waiting(n, 20 * GIB, GIB) for n in range(2, 8))
    later = plan(a_snapshot(free, running=left, waiting=(kept, *young)))
    assert later.bar is not None
    assert later.bar.look.place.uuids == planned
    assert not later.grants  # small jobs do not take what its plan waits for, now or for ever


def test_a_younger_group_takes_the_devices_that_no_plan_needs() -> None:
    running = tuple(a_running(100 + n, 20 * GIB, 20 * GIB, device=n, limit=90.0) for n in range(4))
    node = twelve(lambda n: 20 if n < 4 else 5 if n < 8 else 0)
    first = a_waiting(1, 24 * GIB, GIB, group=(5, 5))
    made = plan(a_snapshot(node, running=running, waiting=(first, a_waiting(2, 19 * GIB, GIB, group=(3, 3)))))
    assert made.bar is not None
    assert 2 in made.grants
    assert not set(made.grants[2].devices) & set(made.bar.look.place.uuids)


SLOW = settings(
    max_examples=examples(24), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@SLOW
@given(worlds())
def test_a_group_starts_wherever_any_set_of_devices_has_room(snapshot: Snapshot) -> None:
    waiting = snapshot.waiting[0]
    board = Board(snapshot)
    fits = [one for one in each_set(board, waiting) if one.ok]
    decision = decide_on(Board(snapshot), waiting)
    assert (decision.grant is not None) is bool(fits)
    assert (1 in plan(snapshot).grants) is bool(fits)
    if decision.grant is not None and waiting.request.even:
        best = min(fits, key=lambda one: best_fit(waiting.request, one.place, one.parts))
        assert set(decision.grant.devices) == set(best.place.uuids)


@SLOW
@given(worlds())
def test_it_can_never_start_only_where_no_set_could_ever_serve(snapshot: Snapshot) -> None:
    waiting = snapshot.waiting[0]
    board = Board(snapshot)
    serve = any(one.candidate.checks[0].ok for one in each_set(board, waiting))
    assert could_ever(snapshot, waiting.request, waiting.estimate)[0].ok is serve


@SLOW
@given(worlds())
def test_its_plan_is_for_the_set_that_is_free_first(snapshot: Snapshot) -> None:
    waiting = snapshot.waiting[0]
    if waiting.request.group_memory is not None:
        return  # of several numbers of devices only some are planned
    made, board = plan(snapshot), Board(snapshot)
    if made.grants:
        return
    least = waiting.request.min_devices
    first = bar_for(board, waiting, [one for one in each_set(board, waiting) if len(one.place.devices) == least])
    if isinstance(first, str):
        assert made.bar is None
    else:
        assert made.bar is not None
        assert made.bar.at == first.at


@SLOW
@given(worlds(queue=5))
def test_the_quick_verdict_is_the_gates_beside_an_older_plan(snapshot: Snapshot) -> None:
    made, board = plan(snapshot), Board(snapshot)
    guard: Guard | None = None
    for waiting in made.queue:
        decision = decide_on(board, waiting, None if guard is None else asking(guard, waiting))
        assert decision.grant == made.grants.get(waiting.job)
        if decision.grant is not None:
            board.admit(started(board, waiting, decision.grant))
        elif made.bar is not None and made.bar.job == waiting.job:
            guard, board.aside = Guard(board, made.bar), frozenset(made.bar.look.place.uuids)
