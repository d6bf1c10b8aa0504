"""The placement history: L10 to L12 by size and device, and what a workload's row keeps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.domain.leasing.allocator import Granted, place
from placement.domain.leasing.later import STUCK_S, pressures
from placement.domain.leasing.slots import Slot
from placement.domain.world.known_asks import KEPT, KEPT_S, Known, Pending, from_json, remembered, to_json
from tests.slots import GB, a_slot, an_ask, slots

NOW = 10_000.0


def holding(slot: Slot, gb: float) -> Slot:
    return slot.changed(int(gb * GB), int(gb > 0), False, ("job 1",) if gb else ())


def knows(*asks: object) -> list[Known]:
    return [Known(ask, NOW) for ask in asks]  # type: ignore[arg-type]


def waits(gb: float, *, id: int = 1, ago: float = 10, job: int = 7, **more: object) -> Pending:
    return Pending(id, an_ask(gb, **more), NOW - ago, job)


def test_l10_a_small_job_goes_on_beside_a_large_request() -> None:
    """8 GB wait, 4 GB are free, the job asks for 1 GB later: it would be served, so it starts."""
    (gpu0,) = slots(8)
    there = [holding(gpu0, 4)]
    assert pressures(knows(an_ask(1)), [waits(8)], there, NOW) == ()
    (found,) = pressures(knows(an_ask(5)), [waits(8)], there, NOW)
    assert (found.requests, found.jobs, found.devices) == ((1,), (7,), ("gpu0",))
    assert (found.need, found.room, found.until) == (5 * GB, 4 * GB, NOW - 10 + STUCK_S)
    assert found.sentence(NOW) == (
        "Runs like this one ask for 4.7 GiB on gpu0 later; 3.7 GiB are left there, and #7 waits for it already. "
        "That holds this one for 10 min more at most."
    )


def test_what_fits_now_is_served_first() -> None:
    (gpu0,) = slots(8)
    there = [holding(gpu0, 4)]
    assert len(pressures(knows(an_ask(2)), [waits(3)], there, NOW)) == 1
    assert pressures(knows(an_ask(1)), [waits(3)], there, NOW) == ()


def test_l11_without_a_history_nothing_is_held() -> None:
    assert pressures([], [waits(8)], [holding(slots(8)[0], 8)], NOW) == ()


@pytest.mark.parametrize("free", [True, False])
def test_l12_a_stuck_request_holds_neither_other_devices_nor_for_ever(free: bool) -> None:
    gpu0, gpu1 = slots(8, 8)
    there = [holding(gpu0, 8), holding(gpu1, 0 if free else 8)]
    stuck = waits(8, device_id=0, ago=STUCK_S - 1)
    assert bool(pressures(knows(an_ask(6)), [stuck], there, NOW)) is not free
    assert pressures(knows(an_ask(6)), [stuck], there, NOW + 1) == ()


def test_only_the_same_devices_are_in_the_way() -> None:
    gpu0, gpu1 = slots(8, 8)
    there = [holding(gpu0, 8), holding(gpu1, 8)]
    assert pressures(knows(an_ask(6, device_id=1)), [waits(8, device_id=0)], there, NOW) == ()
    assert len(pressures(knows(an_ask(6, device_id=1)), [waits(8)], there, NOW)) == 1
    far = a_slot(0, 8, node="other", leased=8 * GB, leases=1)
    assert pressures(knows(an_ask(6)), [waits(8, node="other")], [*there, far], NOW, node="atlas") == ()
    assert pressures(knows(an_ask(99)), [waits(8)], there, NOW) == ()  # never possible: another answer's matter


def test_groups_and_exclusive_ones() -> None:
    gpu0, gpu1 = slots(8, 8)
    there = [holding(gpu0, 0), holding(gpu1, 8)]
    pair = an_ask(8, count=2)
    (found,) = pressures(knows(pair), [waits(6, device_id=1)], there, NOW)
    assert (found.devices, found.need) == (("gpu1",), 4 * GB)
    assert len(pressures(knows(an_ask(1, exclusive=True)), [waits(1, device_id=0)], there, NOW)) == 1


def test_equal_asks_count_once_and_old_ones_are_forgotten() -> None:
    known: tuple[Known, ...] = ()
    for n in range(KEPT + 5):
        known = remembered(known, an_ask(bytes=n + 1, node="atlas"), float(n))
    assert len(known) == KEPT
    assert known[0].ask == an_ask(bytes=KEPT + 5)
    again = remembered(known, an_ask(bytes=KEPT), 100.0)
    assert (len(again), again[0].seen_at) == (KEPT, 100.0)
    assert remembered(known, an_ask(1), KEPT_S + 1000) == (Known(an_ask(1), KEPT_S + 1000),)


def test_a_row_keeps_it_and_forgives_what_it_cannot_read() -> None:
    known = knows(an_ask(1, exclusive=True, device_id=3), an_ask(6, min_devices=2, max_devices=3, even=False))
    kept = to_json(known)
    assert list(from_json(kept)) == known
    assert list(from_json([{"kind": "quantum"}, {}, kept[0] | {"group_bytes": "many"}, kept[1]])) == known[1:]


sizes = st.integers(1, 9)


@given(st.lists(st.tuples(sizes, st.integers(0, 8)), min_size=1, max_size=3), st.lists(sizes, max_size=3), sizes)
@settings(max_examples=100, deadline=None)
def test_whoever_would_be_served_now_is_never_held(devices: list[tuple[int, int]], queue: list[int], need: int) -> None:
    there = [holding(a_slot(n, size), min(size, used)) for n, (size, used) in enumerate(devices)]
    waiting = [waits(size, id=n) for n, size in enumerate(queue)]
    found = pressures(knows(an_ask(need)), waiting, there, NOW)
    if found:
        assert waiting
        assert need <= max(size for size, _ in devices)
    if not any(isinstance(place(one.ask, there), Granted) for one in waiting):
        assert not (found and isinstance(place(an_ask(need), there), Granted))
    assert not pressures(knows(an_ask(need)), waiting, there, NOW + STUCK_S)
