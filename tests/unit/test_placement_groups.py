"""Groups of devices: wholly or not at all, by the allocator's rule, within both rooms, alone where that is asked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.domain.admission.decision import Code, Verdict
from placement.domain.admission.demands import waiting_demand
from placement.domain.admission.gate import decide
from placement.domain.admission.many_devices import all_places
from placement.domain.admission.places import Board
from placement.domain.forecasting.forecast import forecast
from placement.domain.planning.plan import plan
from placement.domain.unblocking.changes import Ends
from placement.domain.unblocking.remedies import remedies
from placement.domain.world.conditions import Conditions, Quota
from placement.domain.world.requests import Exclusive, Gpu, Request
from placement.domain.world.snapshot import KeptPlan, Snapshot
from tests.builders import GIB, a_device, a_node, a_ram, a_running, a_snapshot, a_waiting
from tests.unit.test_verdicts import in_full

ROOMS = st.lists(st.integers(0, 24), min_size=2, max_size=7)


def cards(rooms: Sequence[int]) -> Snapshot:
    """Return a node with devices of 24 GiB that have so many GiB left."""
    return a_snapshot(a_node(*(a_device(24 * GIB, (24 - room) * GIB, index=i) for i, room in enumerate(rooms))))


def greedy(rooms: Sequence[int], counts: Sequence[int], group: int, each: int) -> list[int] | None:
    """Return the devices in grant order by the rule: largest share first, least left over, smaller number."""
    for count in counts:
        even, more = divmod(group, count)
        taken: list[int] = []
        for number in range(count):
            share = even + (number < more) + each
            fits = [(room * GIB - share, i) for i, room in enumerate(rooms) if i not in taken and room * GIB >= share]
            if not fits:
                break
            taken.append(min(fits)[1])
        else:
            return taken
    return None


@settings(max_examples=100, deadline=None)
@given(
    ROOMS, st.integers(1, 4), st.integers(0, 3), st.booleans(), st.integers(0, 60), st.integers(0, 12), st.booleans()
)
def test_a_group_is_given_out_by_the_allocators_rule(
    rooms: list[int], least: int, more: int, most_first: bool, group: int, each: int, a_byte: bool
) -> None:
    together, own = group * GIB + a_byte, each * GIB
    counts = [n for n in range(least, least + more + 1) if n <= len(rooms)]
    job = a_waiting(1, group=(least, least + more), prefer_max=most_first, together=together or 1, each=own, gpu=True)
    decision = decide(cards(rooms), job)
    found = greedy(rooms, counts[::-1] if most_first else counts, together or 1, own)
    assert (None if decision.grant is None else [int(u[4:]) for u in decision.grant.devices]) == found
    if decision.grant is not None and found is not None:
        charges = [decision.grant.charges[uuid] for uuid in decision.grant.devices]
        assert tuple(charges) == job.request.shares(len(found))


@st.composite
def crowds(draw: st.DrawFn) -> Snapshot:
    """Return a node of up to eight devices, runs on some of them, and a queue of groups and of single jobs."""
    count = draw(st.integers(1, 8))
    devices = [
        a_device(
            24 * GIB,
            draw(st.sampled_from([0, 0, 2, 9])) * GIB,
            index=i,
            declared=draw(st.sampled_from([24, 24, 20, 8])) * GIB,
            exclusive_only=draw(st.integers(0, 9)) == 0,
        )
        for i in range(count)
    ]
    running = []
    for n in range(draw(st.integers(0, 4))):
        on = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=3, unique=True))
        alone = draw(st.sampled_from([Exclusive.NO] * 5 + [Exclusive.DEVICE]))
        more = {"others": tuple(on[1:]), "exclusive": alone, "limit": draw(st.sampled_from([None, 100.0]))}
        running.append(a_running(100 + n, draw(st.sampled_from([1, 4, 9])) * GIB, 0, device=on[0], **more))
    queue = []
    for n in range(1, draw(st.integers(2, 8))):
        least = draw(st.integers(1, 4))
        exactly = draw(st.sampled_from([None, None, 3 * GIB, 30 * GIB + 1]))
        queue.append(
            a_waiting(
                n,
                draw(st.sampled_from([None, 1, 4, 9, 20])) and draw(st.integers(1, 20)) * GIB,
                GIB,
                group=(least, least + draw(st.integers(0, 3))) if draw(st.integers(0, 2)) else None,
                exclusive=draw(st.sampled_from([Exclusive.NO] * 5 + [Exclusive.DEVICE, Exclusive.MACHINE])),
            )
        )
        if queue[-1].request.gpu is Gpu.GROUP and exactly is not None:
            request, prefer = queue[-1].request, draw(st.booleans())
            group = (request.min_devices, request.max_devices)
            even = draw(st.booleans())
            queue[-1] = a_waiting(n, None, GIB, group=group, prefer_max=prefer, together=exactly, even=even)
    return a_snapshot(a_node(*devices), running=tuple(running), waiting=tuple(queue))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(crowds())
def test_groups_start_wholly_within_both_rooms_and_an_exclusive_holder_alone(snapshot: Snapshot) -> None:
    made = plan(snapshot)
    asked = {waiting.job: waiting.request for waiting in snapshot.waiting}
    held: defaultdict[str, int] = defaultdict(int)
    there: defaultdict[str, list[tuple[int, bool]]] = defaultdict(list)
    for run in snapshot.running:
        for uuid in run.devices:
            held[uuid] += run.charges[uuid].held
            there[uuid].append((run.job, run.exclusive is Exclusive.DEVICE))
    growth = dict(held)  # nothing of it is in the readings yet
    for job, grant in made.grants.items():
        request = asked[job]
        assert request.min_devices <= len(grant.devices) <= request.max_devices
        assert set(grant.charges) == {*grant.devices, "ram"}
        if request.exact:
            assert sum(grant.charges[uuid] for uuid in grant.devices) == request.group_memory
        if request.exact and request.even:
            assert tuple(grant.charges[uuid] for uuid in grant.devices) == request.shares(len(grant.devices))
        for uuid in grant.devices:
            held[uuid] += grant.charges[uuid]
            growth[uuid] = growth.get(uuid, 0) + grant.charges[uuid]
            there[uuid].append((job, request.exclusive is Exclusive.DEVICE))
    granted = {uuid for grant in made.grants.values() for uuid in grant.devices}
    for device in snapshot.nodes[0].devices:
        if device.uuid not in granted:
            continue
        assert held[device.uuid] <= device.pool.declared
        assert growth[device.uuid] <= (device.pool.free or 0)
        if device.exclusive_only or any(alone for _, alone in there[device.uuid]):
            assert len(there[device.uuid]) == 1
    quick, (decisions, bar) = made, in_full(snapshot)
    assert quick.starts == tuple(d for d in decisions if d.verdict is Verdict.START)
    assert (quick.bar and (quick.bar.job, quick.bar.at)) == (bar and (bar.job, bar.at))
    told = forecast(made.board, tuple(made.waits()), made.bar)
    for waiting in made.waits():
        planned = told[waiting.job]
        if planned.in_s is not None:
            assert waiting.request.min_devices <= len(planned.devices) <= waiting.request.max_devices
        assert made.explain(waiting.job).headline


def test_of_few_devices_every_set_is_looked_at_and_of_many_few() -> None:
    request = a_waiting(1, GIB, group=(1, 8)).request
    assert len(Board(cards([24] * 8)).places(request)) == 255
    for job in (
        a_waiting(1, GIB, group=(2, 64)),
        a_waiting(1, None, group=(2, 64), together=64 * GIB),
        a_waiting(1, None, group=(2, 64), together=64 * GIB, even=False),
    ):
        assert len(all_places(Board(cards([24 - n % 9 for n in range(64)])), waiting_demand(job))) < 64


@given(st.lists(st.integers(0, 24), min_size=9, max_size=20), st.integers(2, 4), st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_on_many_devices_a_group_gets_the_allocators_answer(rooms: list[int], count: int, each: int) -> None:
    decision = decide(cards(rooms), a_waiting(1, each * GIB, group=(count, count)))
    found = greedy(rooms, [count], 0, each * GIB)
    assert (None if decision.grant is None else [int(u[4:]) for u in decision.grant.devices]) == found


def test_a_group_without_room_says_what_stands_against_the_nearest_set() -> None:
    decision = decide(cards([24, 3, 4]), a_waiting(1, 6 * GIB, group=(2, 3)))
    assert decision.headline.startswith("Needs 6.0 GiB; room on gpu2 is 4.0 GiB")
    assert decision.candidates[0].label == "gpu0 + gpu2"
    assert len(decision.candidates) == 3  # with three it would ask for no less of any of them


def test_a_group_that_no_node_can_hold_says_how_many_there_are() -> None:
    decision = decide(cards([24, 24]), a_waiting(1, GIB, group=(3, 4)))
    assert decision.headline == "Can never start: it needs 3 devices of one node, and there are 2 on atlas."
    large = decide(cards([24, 24]), a_waiting(1, group=(2, 2), each=25 * GIB))
    assert large.headline.startswith("Can never start. Needs 25.0 GiB; gpu0 can give at most 24.0 GiB.")
    many = decide(cards([24] * 4), a_waiting(1, group=(2, 2), each=25 * GIB)).headline  # six sets, three first devices
    assert many.count("gpu0 can give at most") == 1
    assert "gpu2 can give at most" in many


def test_one_device_that_is_taken_alone_keeps_every_set_with_it_shut() -> None:
    world = cards([24, 24, 24])
    alone = a_running(7, 2 * GIB, device=1, exclusive=Exclusive.DEVICE)
    decision = decide(replace(world, running=(alone,)), a_waiting(1, GIB, group=(2, 3), prefer_max=True))
    assert decision.grant is not None
    assert decision.grant.devices == ("GPU-0", "GPU-2")
    assert decision.headline == "Starts on gpu0 + gpu2: needs 1.0 GiB on each."


def test_devices_in_ram_are_never_members_of_a_group_of_several() -> None:
    ram = a_ram(64 * GIB)
    unified = replace(a_device(index=0), pool=replace(ram, name="gpu0"))
    board = Board(a_snapshot(a_node(unified, a_device(index=1), a_device(index=2), ram=ram)))
    sets = {place.uuids for place in board.places(a_waiting(1, GIB, group=(1, 3)).request)}
    assert sets == {("GPU-0",), ("GPU-1",), ("GPU-2",), ("GPU-1", "GPU-2")}


def test_a_younger_job_does_not_take_a_device_of_a_groups_plan() -> None:
    """Both devices come free at 1100; what lasts longer and takes either is kept out, what ends before is not."""
    runs = (a_running(7, 20 * GIB, 20 * GIB, device=0, limit=100.0), a_running(8, 1 * GIB, GIB, device=1, limit=50.0))
    world = replace(cards([4, 23]), running=runs)
    group = a_waiting(1, 22 * GIB, group=(2, 2))
    long_, short = a_waiting(2, 3 * GIB, limit=500.0), a_waiting(3, 3 * GIB, limit=60.0)
    made = plan(replace(world, waiting=(group, long_, short)))
    assert made.bar is not None
    assert made.bar.look.place.uuids == ("GPU-0", "GPU-1")
    assert made.bar.at == pytest.approx(1100.0)
    assert list(made.grants) == [3]
    planned = made.bar.planned(1000.0)
    assert (planned.devices, planned.waits_for) == (("GPU-0", "GPU-1"), (8, 7))
    again = replace(group, plan=KeptPlan("atlas", ("GPU-0", "GPU-1"), 1040.0))
    kept = plan(replace(world, waiting=(again, long_)))
    assert kept.bar is not None
    assert not kept.grants


def test_a_forecast_names_as_many_devices_as_the_group_takes() -> None:
    world = replace(
        cards([2, 2, 24]),
        running=tuple(a_running(7 + i, 20 * GIB, 20 * GIB, device=i, limit=60.0 * (i + 1)) for i in range(2)),
    )
    group, after = a_waiting(1, 20 * GIB, group=(2, 2), limit=30.0), a_waiting(2, 20 * GIB, group=(3, 3), limit=30.0)
    made = plan(replace(world, waiting=(group, after)))
    told = forecast(made.board, tuple(made.waits()), made.bar)
    assert told[1].devices == ("GPU-0", "GPU-2")
    assert told[1].in_s == pytest.approx(60.0)
    assert told[2].devices == ("GPU-0", "GPU-1", "GPU-2")
    assert told[2].in_s == pytest.approx(120.0)


def test_who_has_to_end_before_a_group_starts() -> None:
    runs = tuple(a_running(7 + i, 20 * GIB, 20 * GIB, device=i, limit=60.0 * (i + 1)) for i in range(3))
    found = remedies(replace(cards([4, 4, 4]), running=runs, waiting=(a_waiting(1, 20 * GIB, group=(2, 2)),)), 1)
    assert found[0].steps == (Ends((7, 8)),)
    assert found[0].place == "gpu0 + gpu1"


def test_what_is_reserved_exactly_is_not_lowered_on_a_card_of_its_own() -> None:
    world = a_snapshot(a_node(a_device(24 * GIB)), knobs={})
    whole = {"exclusive": Exclusive.DEVICE}
    assert decide(world, a_waiting(1, 24 * GIB, **whole)).grant is not None
    assert decide(world, a_waiting(1, group=(1, 1), each=24 * GIB, **whole)).code is Code.INFEASIBLE
    exact = decide(world, a_waiting(1, None, group=(1, 1), each=20 * GIB, **whole)).grant
    assert exact is not None
    assert exact.charges["GPU-0"] == 20 * GIB


@pytest.mark.parametrize(
    "fields",
    [
        {"gpu": Gpu.NONE, "per_device_memory": GIB},
        {"gpu": Gpu.ONE, "max_devices": 2},
        {"gpu": Gpu.ONE, "group_memory": GIB},
        {"gpu": Gpu.ONE, "prefer_max": True},
        {"gpu": Gpu.GROUP, "min_devices": 3, "max_devices": 2},
        {"gpu": Gpu.GROUP, "min_devices": 0},
        {"gpu": Gpu.GROUP, "max_devices": 2, "device": "GPU-0"},
        {"gpu": Gpu.GROUP, "per_device_memory": 0},
    ],
)
def test_a_request_that_means_nothing_cannot_be_built(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        Request(**fields)  # type: ignore[arg-type]


@given(st.integers(1, 1 << 50), st.integers(0, 1 << 40), st.integers(1, 64))
def test_shares_add_up_to_the_byte_and_differ_by_one(group: int, each: int, count: int) -> None:
    shares = Request(Gpu.GROUP, max_devices=count, group_memory=group, per_device_memory=each).shares(count)
    assert sum(shares) == group + count * each
    assert shares == tuple(sorted(shares, reverse=True))
    assert shares[0] - shares[-1] in (0, 1)


def test_a_quota_counts_all_devices_of_a_group_and_lets_it_have_fewer_than_it_prefers() -> None:
    def under(limit: int) -> Conditions:
        return Conditions(quota=Quota("alice", vram=limit))

    job = a_waiting(1, 4 * GIB, group=(2, 3), prefer_max=True)
    world = cards([24, 24, 24])
    fewer = replace(world, waiting=(replace(job, conditions=under(9 * GIB)),))
    made = plan(fewer)
    assert made.grants[1].devices == ("GPU-0", "GPU-1")
    assert made.starts[0].grant == made.grants[1]
    refused = decide(world, replace(job, conditions=under(7 * GIB)))
    assert (refused.code, refused.grant) == (Code.QUOTA, None)
    assert "it needs 8.0 GiB" in refused.headline


def test_only_devices_that_one_process_can_use_are_a_group() -> None:
    kinds = ("CUDA", "ROCM", "CUDA", "ROCM")
    board = Board(a_snapshot(a_node(*(a_device(index=i, backend=kind) for i, kind in enumerate(kinds)))))
    sets = {place.uuids for place in board.places(a_waiting(1, GIB, group=(2, 2)).request)}
    assert sets == {("GPU-0", "GPU-2"), ("GPU-1", "GPU-3")}
    slices = a_snapshot(a_node(*(a_device(index=i, pool=f"MIG-{i}") for i in range(2))))
    assert not Board(slices).places(a_waiting(1, GIB, group=(2, 2)).request)
