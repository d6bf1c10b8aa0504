"""What holds for every machine and every ask, and a search through all assignments beside the allocator's answer."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from placement.domain.leasing import leases
from placement.domain.leasing.allocator import Granted, Impossible, Unavailable, accepts, place, possible, supports
from placement.domain.leasing.ledger import Book, opened
from placement.domain.leasing.slots import Slot
from placement.domain.world.asks import Ask, counts, shares
from placement.domain.world.devices import Backend, DeviceKey, Kind
from tests.slots import a_slot

SMALL = st.integers(0, 12)


@st.composite
def machines(draw: st.DrawFn, most: int = 5) -> list[Slot]:
    """Return up to five devices of a few bytes on two nodes, some read by a probe, some busy, alone or shut."""
    found = []
    for number in range(draw(st.integers(1, most))):
        declared = draw(st.integers(1, 12))
        count = draw(st.integers(0, 2))
        alone = draw(st.booleans()) and count == 1
        measured = draw(st.none() | st.integers(-2, declared))
        found.append(
            replace(
                a_slot(number, node=draw(st.sampled_from(["atlas", "atlas", "borea"]))),
                declared=declared,
                leased=draw(st.integers(0, declared + 1)) if count else 0,
                leases=count,
                alone=alone,
                measured=measured,
                measured_most=None if measured is None else draw(st.integers(max(0, measured), 12)),
                exclusive_only=draw(st.integers(0, 5)) == 0,
                shut="drained" if draw(st.integers(0, 9)) == 0 else "",
                backends=draw(st.sampled_from([(Backend.CUDA,), (Backend.CUDA, Backend.ROCM), (Backend.ROCM,)])),
                holders=tuple(f"job {n}" for n in range(count)),
            )
        )
    return found


@st.composite
def asks(draw: st.DrawFn, most: int = 4) -> Ask:
    least = draw(st.integers(1, most))
    top = draw(st.integers(least, most))
    group, each, exclusive = draw(SMALL), draw(st.integers(0, 3)), draw(st.integers(0, 4)) == 0
    return Ask(
        Kind.GPU,
        Backend.CUDA,
        group_bytes=group or (0 if each or exclusive else 1),
        per_device_bytes=each,
        min_devices=least,
        max_devices=top,
        exclusive=exclusive,
        device_id=draw(st.none() | st.integers(0, 4)) if top == 1 else None,
        prefer_max=draw(st.booleans()),
        even=draw(st.booleans()),
        node=draw(st.sampled_from([None, None, "atlas", "borea"])),
    )


def idle(slots: list[Slot]) -> list[Slot]:
    """Return the same devices with nobody there and as much measured as there can be."""
    return [replace(s, leased=0, leases=0, alone=False, shut="", measured=s.measured_most, holders=()) for s in slots]


def searched(ask: Ask, slots: list[Slot]) -> int | None:
    """Return the first number of devices for which any assignment of the shares exists, None where none does."""
    able = [slot for slot in slots if supports(ask, slot)]
    for count in counts(ask):
        for chosen in itertools.permutations(able, count):
            if len({slot.device[0] for slot in chosen}) > 1:
                continue
            if ask.even:
                if all(accepts(ask, slot, share) for slot, share in zip(chosen, shares(ask, count), strict=True)):
                    return count
            elif all(accepts(ask, slot, ask.per_device_bytes) for slot in chosen) and (
                sum(slot.room - ask.per_device_bytes for slot in chosen) >= ask.group_bytes
            ):
                return count
    return None


@settings(max_examples=600, deadline=None)
@given(machines(), asks())
def test_it_finds_an_assignment_whenever_there_is_one(slots: list[Slot], ask: Ask) -> None:
    answer = place(ask, slots)
    now, ever = searched(ask, slots), searched(ask, idle(slots))

    assert (len(answer.members) if isinstance(answer, Granted) else None) == now
    if now is None:
        assert isinstance(answer, Impossible if ever is None else Unavailable)
    assert possible(ask, slots) == (ever is not None)


@settings(max_examples=300, deadline=None)
@given(machines(), asks())
def test_a_grant_is_whole_and_within_both_rooms(slots: list[Slot], ask: Ask) -> None:
    answer = place(ask, slots)
    if not isinstance(answer, Granted):
        return
    by_key = {slot.device: slot for slot in slots}
    count = len(answer.members)

    assert ask.min_devices <= count <= ask.max_devices
    assert len({member.device for member in answer.members}) == count
    assert sum(member.bytes for member in answer.members) == ask.group_bytes + count * ask.per_device_bytes
    given_ = [member.bytes for member in answer.members]
    assert given_ == sorted(given_, reverse=True)
    assert not ask.even or tuple(given_) == shares(ask, count)
    for member in answer.members:
        slot = by_key[member.device]
        assert supports(ask, slot)
        assert member.bytes >= ask.per_device_bytes
        assert slot.leased + member.bytes <= slot.declared
        assert slot.measured is None or member.bytes <= slot.measured
        assert not slot.alone
        assert not slot.shut
        assert not (slot.leases and (ask.exclusive or slot.exclusive_only))
        assert member.bound.room == min(r for r in (slot.booked, slot.measured) if r is not None)


@settings(max_examples=300, deadline=None)
@given(machines(), asks(), st.randoms(use_true_random=False))
def test_the_answer_does_not_depend_on_the_order_of_the_devices(
    slots: list[Slot], ask: Ask, shuffle: random.Random
) -> None:
    mixed = list(slots)
    shuffle.shuffle(mixed)

    assert place(ask, mixed) == place(ask, slots) == place(ask, slots)


@settings(max_examples=300, deadline=None)
@given(machines(), asks())
def test_every_refusal_can_be_told(slots: list[Slot], ask: Ask) -> None:
    answer = place(ask, slots)
    if isinstance(answer, Unavailable):
        assert answer.obstacles
        assert answer.sentence.startswith("Needs ")
        assert all(o.bound.room < o.need or o.rule not in ("booked", "measured") for o in answer.obstacles)
    elif isinstance(answer, Impossible):
        assert len(answer.devices) == len(slots)
        assert answer.sentence.startswith("Asked for ")


@settings(max_examples=200, deadline=None)
@given(machines(), asks())
@example([replace(a_slot(0), declared=3), replace(a_slot(1), declared=8)], Ask(Kind.GPU, Backend.CUDA, 7, 0, 2, 2))
def test_the_tightest_device_takes_one(slots: list[Slot], ask: Ask) -> None:
    one = replace(ask, min_devices=1, max_devices=1)
    answer = place(one, slots)
    if isinstance(answer, Granted):
        share = answer.primary.bytes
        fitting = [s for s in slots if supports(one, s) and accepts(one, s, share)]
        best = min(fitting, key=lambda s: (s.room - share, s.id, s.device[0]))
        assert answer.primary.device == best.device


@settings(max_examples=200, deadline=None)
@given(machines(), st.lists(st.tuples(asks(), st.booleans()), max_size=12), st.randoms(use_true_random=False))
def test_what_is_taken_counts_and_giving_all_back_restores_the_start(
    slots: list[Slot], wanted: list[tuple[Ask, bool]], order: random.Random
) -> None:
    start = opened(idle(slots))
    book, live = start, []
    for number, (ask, give_back) in enumerate(wanted):
        answer = book.place(ask)
        if isinstance(answer, Granted):
            book, lease = book.grant(ask, answer, leases.job(number), float(number))
            live.append(lease.id)
        if give_back and live:
            book, released = book.let_go(live[0], book.leases[live[0]].holders[0])
            assert released is not None
            live.pop(0)
        assert_consistent(book)
    order.shuffle(live)
    for id in live:
        book, _ = book.let_go(id, book.leases[id].holders[0])

    assert not book.leases
    assert book.measure({device: slot.measured for device, slot in start.slots.items()}).slots == start.slots


def assert_consistent(book: Book) -> None:
    """Check that each slot says what the leases say, and that nobody is beside somebody alone."""
    for device, slot in book.slots.items():
        there = parts(book, device)
        assert slot.leased == sum(size for size, _ in there) <= slot.declared
        assert slot.leases == len(there) == len(slot.holders)
        assert slot.alone == any(alone for _, alone in there)
        assert not slot.alone or len(there) == 1


def parts(book: Book, device: DeviceKey) -> list[tuple[int, bool]]:
    return [(p.bytes, p.alone) for lease in book.on(device) for p in lease.parts if p.device == device]
