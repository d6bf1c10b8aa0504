"""Shares by the room of each device, and devices of one kind or backend alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.domain.admission.decision import Code, Verdict
from placement.domain.admission.gate import decide
from placement.domain.planning.feasibility import could_ever
from placement.domain.planning.plan import plan
from placement.domain.world.requests import Exclusive, Gpu, Request, by_room
from tests.builders import GIB, a_device, a_node, a_running, a_snapshot, a_waiting

SIZES = (4, 6, 8)


def uneven(together: int, **more: object) -> object:
    return a_waiting(1, group=(3, 3), together=together, even=False, **more)


def machine(*running: object) -> object:
    devices = [a_device(size * GIB, index=i) for i, size in enumerate(SIZES)]
    return a_snapshot(a_node(*devices), running=tuple(running))


@given(st.integers(0, 10**15), st.lists(st.integers(0, 10**12), min_size=1, max_size=8))
def test_nothing_is_lost_and_nobody_is_given_more_than_it_has_room_for(amount: int, rooms: list[int]) -> None:
    parts = by_room(amount, rooms)
    assert sum(parts) == amount
    if amount <= sum(rooms):
        assert all(part <= room for part, room in zip(parts, rooms, strict=True))


def test_devices_of_unlike_size_are_filled_wholly() -> None:
    decision = decide(machine(), uneven(18 * GIB))
    assert decision.verdict is Verdict.START
    assert [(u, decision.grant.charges[u] // GIB) for u in decision.grant.devices] == [
        ("GPU-2", 8),
        ("GPU-1", 6),
        ("GPU-0", 4),
    ]
    even = decide(machine(), a_waiting(1, group=(3, 3), together=18 * GIB))
    assert (even.verdict, even.code) == (Verdict.WAIT, Code.INFEASIBLE)


def test_each_device_gets_its_own_part_first() -> None:
    decision = decide(machine(), uneven(9 * GIB, each=3 * GIB))
    assert decision.grant.charges == {"GPU-2": 8 * GIB, "GPU-1": 6 * GIB, "GPU-0": 4 * GIB, "ram": 0}


def test_what_is_there_now_divides_it_and_a_byte_too_much_waits_or_is_never_there() -> None:
    there = machine(a_running(9, 2 * GIB, 2 * GIB, device=1))
    fits = decide(there, uneven(16 * GIB))
    assert [fits.grant.charges[f"GPU-{i}"] for i in range(3)] == [4 * GIB, 4 * GIB, 8 * GIB]
    waits = decide(there, uneven(16 * GIB + 1))
    assert (waits.verdict, waits.code) == (Verdict.WAIT, Code.BOOKED)
    never = decide(there, uneven(18 * GIB + 1))
    assert never.code is Code.INFEASIBLE
    job = uneven(18 * GIB + 1)
    assert not could_ever(there, job.request, job.estimate)[0].ok


def test_a_device_without_room_is_waited_for_and_not_taken_with_nothing() -> None:
    full = machine(a_running(9, 4 * GIB, 4 * GIB, device=0))
    assert decide(full, uneven(6 * GIB)).code is Code.BOOKED
    pair = decide(full, a_waiting(1, group=(2, 3), together=6 * GIB, even=False))
    assert pair.grant.devices == ("GPU-2", "GPU-1")


def test_the_cycle_starts_what_the_gate_starts() -> None:
    job = uneven(18 * GIB)
    snapshot = a_snapshot(*machine().nodes, waiting=(job,))
    [start] = plan(snapshot).starts
    assert start.grant.charges == decide(snapshot, job).grant.charges


def test_equal_largest_shares_of_unlike_groups_are_judged_apart() -> None:
    snapshot = a_snapshot(a_node(*(a_device(4 * GIB, index=i) for i in range(4))))
    each = a_waiting(1, group=(2, 4), each=5 * GIB)
    together = a_waiting(2, group=(2, 4), together=10 * GIB)
    assert not could_ever(snapshot, each.request, each.estimate)[0].ok
    assert could_ever(snapshot, together.request, together.estimate)[0].ok
    planned = plan(a_snapshot(*snapshot.nodes, waiting=(each, together)))
    assert [start.job for start in planned.starts] == [2]


def test_only_devices_of_the_backend_are_places() -> None:
    cards = [a_device(8 * GIB, index=0), *(a_device(8 * GIB, index=i, backend="ROCM") for i in (1, 2))]
    snapshot = a_snapshot(a_node(*cards))
    assert decide(snapshot, a_waiting(1, 2 * GIB, backend="ROCM")).grant.devices == ("GPU-1",)
    assert decide(snapshot, a_waiting(1, 2 * GIB, group=(2, 2), backend="ROCM")).grant.devices == ("GPU-1", "GPU-2")
    never = decide(snapshot, a_waiting(1, 2 * GIB, group=(2, 2), backend="CUDA"))
    assert never.headline == "Can never start: it needs 2 CUDA devices of one node, and there is 1 on atlas."
    said = decide(snapshot, a_waiting(1, 2 * GIB, backend="XLA")).headline
    assert said == "Can never start: it needs one XLA device, and there is none on atlas."
    named = decide(snapshot, a_waiting(1, 2 * GIB, device="GPU-0", backend="ROCM")).headline
    assert named == "Can never start: it needs one ROCM device, and gpu0 is a CUDA GPU."


def test_a_request_that_contradicts_itself_cannot_be_built() -> None:
    for wrong in (
        {"gpu": Gpu.GROUP, "even": False},
        {"gpu": Gpu.GROUP, "even": False, "per_device_memory": 1},
        {"gpu": Gpu.NONE, "backend": "CUDA"},
        {"gpu": Gpu.NONE, "exclusive": Exclusive.DEVICE},
    ):
        with pytest.raises(ValueError, match=r"\.$"):
            Request(**wrong)
