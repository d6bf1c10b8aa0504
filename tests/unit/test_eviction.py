"""Eviction of idle residents: vectors H as they should be, and a search held against brute force."""

from __future__ import annotations

import time
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from placement.domain.leasing import eviction
from placement.domain.leasing.allocator import Granted, place
from placement.domain.leasing.eviction import Idle, plan, without
from placement.domain.leasing.leases import Part
from placement.domain.leasing.slots import Slot
from placement.domain.world.asks import Ask
from tests.slots import GB, a_slot, an_ask, members, slots


def idle(
    id: int, gb: float, age: float, slot: Slot, lease: int | None = None, alone: bool = False, **more: object
) -> Idle:
    return Idle(id, lease or id, (Part(slot.device, int(gb * GB), alone),), age, **more)  # type: ignore[arg-type]


def taken(slot: Slot, *residents: Idle, live: float = 0) -> Slot:
    """Return a device with its residents' leases, and so many GB of somebody who is not idle."""
    parts = {one.lease: p for one in residents for p in one.parts if p.device == slot.device}.values()
    more = int(live * GB)
    leased, alone = sum(p.bytes for p in parts) + more, any(p.alone for p in parts)
    return slot.changed(leased, len(parts) + (more > 0), alone, ())


ONE, TWO = a_slot(0, 10), a_slot(1, 10)
A, B, C = idle(1, 3, 5, ONE), idle(2, 3, 1, ONE), idle(3, 3, 9, ONE)
SMALL, BIG = idle(1, 1, 1, ONE), idle(2, 6, 2, ONE)
LIVE4 = [taken(ONE, idle(1, 4, 1, ONE), live=4)]
NINE, FOUR = idle(1, 9, 1, ONE), idle(2, 4, 2, TWO)
TWICE = [idle(1, 8, 3, ONE, lease=7), idle(2, 8, 1, ONE, lease=7)]


@pytest.mark.parametrize(
    "there, residents, ask, goes, freed",
    [
        pytest.param([taken(ONE, A, B, C)], [A, B, C], an_ask(4), (2,), 3, id="H1"),
        pytest.param([taken(ONE, A, B, C)], [A, B, C], an_ask(7), (2, 1), 6, id="H2"),
        pytest.param([taken(ONE, SMALL, BIG)], [SMALL, BIG], an_ask(8), (2,), 6, id="H5: only the big one"),
        pytest.param([taken(ONE, live=8)], [], an_ask(8), None, 0, id="H6: pinned"),
        pytest.param(LIVE4, [idle(1, 4, 1, ONE)], an_ask(1, exclusive=True), None, 0, id="H7"),
        pytest.param(LIVE4, [idle(1, 4, 1, ONE)], an_ask(6), (1,), 4, id="H8"),
        pytest.param(LIVE4, [idle(1, 4, 1, ONE)], an_ask(9), None, 0, id="H9"),
        pytest.param(
            [taken(ONE, NINE), taken(TWO, FOUR)], [NINE, FOUR], an_ask(7), (2,), 4, id="H10: as far beyond, but less"
        ),
        pytest.param([taken(ONE, live=9), taken(TWO, FOUR)], [FOUR], an_ask(7), (2,), 4, id="H11: there it works"),
        pytest.param([taken(ONE, NINE), taken(TWO, live=9)], [NINE], an_ask(12, count=2), None, 0, id="H12"),
        pytest.param([taken(ONE, *TWICE)], TWICE, an_ask(8), (2, 1), 8, id="H13: one lease, both"),
        pytest.param(
            [taken(ONE, A, B)],
            [idle(1, 3, 1, ONE, created=9), idle(2, 3, 1, ONE, created=4)],
            an_ask(5),
            (2,),
            3,
            id="H14: the older creation",
        ),
        pytest.param(
            [taken(ONE, A, B)], [idle(2, 3, 1, ONE), idle(1, 3, 1, ONE)], an_ask(5), (1,), 3, id="H15: then the id"
        ),
        pytest.param(
            [taken(ONE, idle(1, 8, 1, ONE))], [idle(1, 8, 1, ONE, others=True)], an_ask(8), None, 0, id="H16, L15"
        ),
        pytest.param([taken(ONE, idle(1, 8, 1, ONE))], [idle(1, 8, 1, ONE)], an_ask(8), (1,), 8, id="H17, L14"),
        pytest.param(
            [taken(ONE, NINE), taken(TWO, idle(2, 9, 2, TWO))],
            [NINE, idle(2, 9, 2, TWO)],
            an_ask(12, count=2),
            (1, 2),
            18,
            id="H18: each 5 short",
        ),
        pytest.param(
            [taken(ONE, idle(1, 0, 1, ONE, alone=True))],
            [idle(1, 0, 1, ONE, alone=True)],
            an_ask(bytes=1),
            (1,),
            0,
            id="H19: a holder of nothing who is alone",
        ),
        pytest.param([taken(ONE, A)], [A], an_ask(7), None, 0, id="H20: it fits"),
        pytest.param([taken(ONE, A)], [A], an_ask(11), None, 0, id="H20: it never can"),
    ],
)
def test_vectors(
    there: list[Slot], residents: list[Idle], ask: Ask, goes: tuple[int, ...] | None, freed: float
) -> None:
    found = plan(ask, there, residents)
    assert (found and found.residents) == goes
    if found is not None:
        assert found.freed == freed * GB
        assert found.exact
        assert found.granted == place(ask, without(there, [one for one in residents if one.id in found.residents]))


def test_the_device_where_least_is_wasted() -> None:
    """One resident either way: the newer one, of 6 GB for 6 GB too little, not the 4 GB for 1 GB."""
    residents = [idle(1, 6, 9, ONE), idle(2, 4, 1, TWO)]
    found = plan(an_ask(7), [taken(ONE, residents[0], live=3), taken(TWO, residents[1])], residents)
    assert found is not None
    assert (found.residents, found.excess) == ((1,), 0)


def test_one_whose_stop_failed_stays_and_another_goes() -> None:
    there, residents = [taken(ONE, A, B, C)], [A, B, C]
    found = plan(an_ask(4), there, residents, failed=frozenset({2}))
    assert found is not None
    assert found.residents == (1,)
    assert plan(an_ask(7), there, residents, failed=frozenset({1, 2})) is None
    assert plan(an_ask(8), [taken(ONE, *TWICE)], TWICE, failed=frozenset({1})) is None  # the lease stays


def test_uneven_shares_and_what_is_measured() -> None:
    one, two = idle(1, 4, 1, ONE), idle(2, 8, 2, TWO)
    there = [taken(ONE, one), taken(TWO, two)]
    found = plan(an_ask(15, count=2, even=False), there, [one, two])
    assert found is not None
    assert found.residents == (2,)
    # 4 GB are leased and 9 GB seen: with the room that is measured it is this one that helps
    slot = a_slot(0, 10, leased=4 * GB, leases=1, measured=1 * GB)
    seen = idle(1, 4, 1, slot, measured={slot.device: 9 * GB})
    found = plan(an_ask(9), [slot], [seen])
    assert found is not None
    assert members(found.granted) == [(0, 9 * GB)]
    assert plan(an_ask(9), [slot], [idle(1, 4, 1, slot, measured={slot.device: 7 * GB})]) is None


def test_a_group_frees_on_all_its_devices() -> None:
    group = Idle(1, 1, (Part(ONE.device, 8 * GB), Part(TWO.device, 8 * GB)), used=9)
    single = idle(2, 1, 1, ONE)
    found = plan(an_ask(8, count=2), [taken(ONE, group, single), taken(TWO, group)], [group, single])
    assert found is not None
    assert (found.residents, found.freed) == ((1,), 16 * GB)


def test_many_of_one_size_are_no_search() -> None:
    slot = a_slot(0, 64)
    crowd = [idle(n, 1, 100 - n, slot) for n in range(64)]
    began = time.process_time()
    found = plan(an_ask(32), [taken(slot, *crowd)], crowd)
    assert found is not None
    assert found.exact
    assert found.residents == tuple(range(63, 31, -1))
    assert time.process_time() - began < 2


def test_two_dozen_on_eight_devices_are_no_search_either() -> None:
    eight = slots(*[80] * 8)
    crowd = [idle(n, (5, 9, 14, 20)[n * 7 % 4], n, eight[n % 8]) for n in range(24)]
    full = [taken(slot, *(one for one in crowd if one.parts[0].device == slot.device), live=20) for slot in eight]
    began = time.process_time()
    found = plan(an_ask(200, count=4), full, crowd)
    assert found is not None
    assert found.exact
    assert time.process_time() - began < 2


def test_where_there_are_too_many_nobody_goes_in_vain() -> None:
    slot = a_slot(0, 3000)
    crowd = [idle(n, 20 + n * 1.001, n, slot) for n in range(60)]
    found = plan(an_ask(1500.123), [taken(slot, *crowd, live=100)], crowd)
    assert found is not None
    assert not found.exact
    for spared in found.residents:
        left = [one for one in crowd if one.id in found.residents and one.id != spared]
        assert not isinstance(place(an_ask(1500.123), without([taken(slot, *crowd, live=100)], left)), Granted)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Slot], list[Idle], Ask]:
    there = slots(*draw(st.lists(st.integers(4, 10), min_size=1, max_size=3)))
    residents: list[Idle] = []
    room = {slot.device: slot.declared // GB for slot in there}
    for id in range(draw(st.integers(1, 6))):
        on = draw(st.lists(st.sampled_from(there), min_size=1, max_size=2, unique_by=lambda s: s.device))
        parts = []
        for slot in on:
            size = draw(st.integers(0, min(4, room[slot.device])))
            room[slot.device] -= size
            parts.append(Part(slot.device, size * GB))
        residents.append(Idle(id, id, tuple(parts), draw(st.integers(0, 3)), others=draw(st.integers(0, 9)) == 0))
        if draw(st.integers(0, 5)) == 0:
            residents.append(Idle(id + 50, id, tuple(parts), draw(st.integers(0, 3))))
    full = [taken(s, *residents, live=draw(st.integers(0, room[s.device]))) for s in there]
    count = draw(st.integers(1, len(there)))
    more = {"even": draw(st.booleans()), "exclusive": draw(st.integers(0, 4)) == 0}
    least = draw(st.integers(1, count))
    return full, residents, an_ask(draw(st.integers(1, 14)), min_devices=least, max_devices=count, **more)


@pytest.mark.parametrize("few", [8, 0])
@given(worlds())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_set_of_residents_is_better(few: int, world: tuple[list[Slot], list[Idle], Ask]) -> None:
    there, residents, ask = world
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(eviction, "FEW", few)  # 0: device by device, wherever that is the same
        found = plan(ask, there, residents)
    free = {one.lease for one in residents if one.others}
    leases = sorted({one.lease for one in residents} - free)
    enough = []
    for size in range(len(leases) + 1):
        for some in combinations(leases, size):
            gone = [one for one in residents if one.lease in some]
            if isinstance(place(ask, without(there, gone)), Granted):
                enough.append(gone)
    if found is None:
        assert not [gone for gone in enough if gone] or [] in enough
        return
    chosen = [one for one in residents if one.id in found.residents]
    assert found.granted == place(ask, without(there, chosen))
    assert found.exact
    fewest = min(len(gone) for gone in enough)
    assert len(chosen) == fewest
    assert found.excess == min(_excess(ask, there, gone) for gone in enough if len(gone) == fewest)


def _excess(ask: Ask, there: list[Slot], gone: list[Idle]) -> int:
    """Return the bytes freed beyond what the devices of the grant lacked."""
    granted = place(ask, without(there, gone))
    assert isinstance(granted, Granted)
    before = {slot.device: slot for slot in there}
    lacked = 0
    for member in granted.members:
        slot = before[member.device]
        lacked += max(slot.leased, 1) if ask.exclusive and slot.leases else max(0, member.bytes - slot.room)
    return max(0, sum({one.lease: sum(p.bytes for p in one.parts) for one in gone}.values()) - lacked)
