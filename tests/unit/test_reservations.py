"""Both ledgers of a pool: growth, what is kept, and rooms whose terms add up."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.domain.knobs import Knobs
from placement.domain.world.reservations import Holder, Ledger, booked_room, growth_by_holder, kept, measured_room
from placement.domain.world.snapshot import Charge
from tests.builders import GIB, MIB, a_device, a_node, a_pool, a_ram, a_running, a_snapshot


@pytest.mark.parametrize(
    ("charge", "used", "growth"),
    [
        pytest.param(2049, 543, 1506, id="half way there"),
        pytest.param(549, 549, 0, id="at its peak nothing is left to grow"),
        pytest.param(2049, None, 2049, id="not measured holds its whole charge"),
        pytest.param(2049, 9000, 0, id="above its charge borrows from nobody"),
        pytest.param(549, 100, 449, id="memory freed between phases is expected back"),
    ],
)
def test_growth_is_charge_less_measured(charge: int, used: int | None, growth: int) -> None:
    held = charge if used is None else max(charge, used)
    assert Charge(charge, held, used, charge).growth == growth


def test_growth_by_holder_names_everybody_there() -> None:
    snapshot = a_snapshot(
        running=(a_running(1, 8 * GIB, 6 * GIB), a_running(2, 4 * GIB, 4 * GIB), a_running(3, 9 * GIB, device=1))
    )
    assert growth_by_holder(snapshot, snapshot.nodes[0].devices[0].pool) == {1: 2 * GIB, 2: 0}


@pytest.mark.parametrize(
    ("pool", "margins", "candidate", "want"),
    [
        pytest.param(a_pool(24 * GIB), (), 0, 24 * GIB // 100, id="one per cent of a small card"),
        pytest.param(a_pool(80 * GIB), (), 0, 256 * MIB, id="256 MiB of a large card"),
        pytest.param(a_ram(64 * GIB), (), 0, int(64 * GIB * 0.15), id="15 per cent of RAM"),
        pytest.param(a_ram(512 * GIB), (), 0, 32 * GIB, id="32 GiB of much RAM"),
        pytest.param(a_pool(80 * GIB), (GIB, 64 * MIB), 0, GIB, id="the largest margin there"),
        pytest.param(a_pool(80 * GIB), (GIB,), 2 * GIB, 2 * GIB, id="the candidate's own margin counts"),
        pytest.param(a_pool(80 * GIB), (64 * MIB,), 64 * MIB, 256 * MIB, id="the larger of both, never the sum"),
    ],
)
def test_kept(pool: object, margins: tuple[int, ...], candidate: int, want: int) -> None:
    assert kept(pool, margins, candidate, Knobs()).kept == want  # type: ignore[arg-type]


def test_a_promise_stays_booked_whatever_is_used() -> None:
    snapshot = a_snapshot(running=(a_running(1, 10 * GIB, 1 * GIB),))
    booking = booked_room(snapshot, snapshot.nodes[0].devices[0].pool)
    assert (booking.leased, booking.room, booking.holders) == (10 * GIB, 14 * GIB, ((1, 10 * GIB),))


def test_a_lease_follows_use_above_the_charge() -> None:
    snapshot = a_snapshot(running=(a_running(1, 4 * GIB, 20 * GIB),))
    assert booked_room(snapshot, snapshot.nodes[0].devices[0].pool).room == 4 * GIB


def test_unknown_free_gives_no_room_not_zero() -> None:
    snapshot = a_snapshot(a_node(a_device(24 * GIB, None)))
    room = measured_room(snapshot, snapshot.nodes[0].devices[0].pool)
    assert room.room is None
    assert room.withheld is None


def test_a_lowered_declaration_shows_below_zero() -> None:
    snapshot = a_snapshot(a_node(a_device(24 * GIB, declared=8 * GIB)), running=(a_running(1, 10 * GIB),))
    assert booked_room(snapshot, snapshot.nodes[0].devices[0].pool).room == -2 * GIB


SIZE = st.integers(0, 40 * GIB)


@settings(max_examples=150)
@given(
    total=st.integers(1, 80 * GIB),
    used=SIZE,
    reserved=st.none() | st.integers(0, GIB),
    jobs=st.lists(st.tuples(SIZE, st.none() | SIZE, st.integers(0, 3 * GIB)), max_size=5),
    margin=st.integers(0, 4 * GIB),
)
def test_the_terms_always_add_up(
    total: int, used: int, reserved: int | None, jobs: list[tuple[int, int | None, int]], margin: int
) -> None:
    running = tuple(
        a_running(n, charge, seen, margins={"GPU-0": cushion}) for n, (charge, seen, cushion) in enumerate(jobs, 1)
    )
    snapshot = a_snapshot(a_node(a_device(total, used, reserved=reserved)), running=running, knobs=Knobs())
    room = measured_room(snapshot, snapshot.nodes[0].devices[0].pool, margin)
    assert room.withheld is not None
    assert total - used - room.withheld - room.kept.kept - sum(g for _, g in room.holders) == room.room
    assert sum(g for _, g in room.holders) == room.growth
    assert room.kept.kept == max(room.kept.floor, room.kept.cushion)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 5)), min_size=1, max_size=8))
def test_a_pool_with_one_more_holder_says_what_one_made_anew_does(sizes: list[tuple[int, int, int]]) -> None:
    pool, knobs = a_pool(24 * GIB, GIB), Knobs()
    holders = tuple(Holder(9 - n, Charge(h, h, u, h), m) for n, (h, u, m) in enumerate(sizes))
    carried = Ledger(pool, (), knobs)
    for number, holder in enumerate(holders):
        carried.answers["anything"] = number
        assert (carried.growing, carried.leases) is not None
        carried = carried.plus(holder)
    anew = Ledger(pool, holders, knobs)
    assert carried == anew
    for name in ("growing", "leases", "growth", "leased", "back", "answers"):
        assert getattr(carried, name) == getattr(anew, name), name
