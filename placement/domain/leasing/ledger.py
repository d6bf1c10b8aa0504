"""The book of leases: who has which capacity. Each change returns a new book; the old one stays as it was.

A slot says how much is leased of it, how often and by whom; whoever has a device alone is the only one there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from placement.domain.leasing.allocator import Answer, Granted, place
from placement.domain.leasing.leases import Holder, Holding, Lease, Part
from placement.domain.leasing.slots import Slot, accepts
from placement.domain.world.asks import Ask
from placement.domain.world.devices import DeviceKey


class NoLease(LookupError):
    """There is no such lease: its last holder has let go."""


@dataclass(frozen=True, slots=True)
class Book:
    """All devices as the allocator sees them, and all live leases by number. Made by ``opened``."""

    slots: Mapping[DeviceKey, Slot]
    leases: Mapping[int, Lease] = field(default_factory=dict)
    last: int = 0  # the number of the newest lease

    def place(self, ask: Ask) -> Answer:
        """Return where the ask would be served now."""
        return place(ask, self.slots.values())

    def grant(self, ask: Ask, granted: Granted, holder: Holder, now: float, promise: bool = True) -> tuple[Book, Lease]:
        """Take all devices of an answer, or raise ValueError if one no longer gives its bytes.

        Until the next reading the bytes are missing from the measured room too: the holder has yet to take them.
        """
        parts, taken = [], {}
        for member in granted.members:
            slot = self.slots.get(member.device)
            if slot is None or not accepts(ask, slot, member.bytes):
                raise ValueError(f"{member.device[1]} no longer gives {member.bytes} bytes; ask again.")
            parts.append(Part(member.device, member.bytes, ask.exclusive or slot.exclusive_only))
            if slot.measured is not None:
                taken[member.device] = replace(slot, measured=slot.measured - member.bytes)
        lease = Lease(self.last + 1, tuple(parts), (holder,), now, promise)
        book = Book({**self.slots, **taken} if taken else self.slots, self.leases, lease.id)
        return book._changed(lease.id, lease), lease

    def hold(self, number: int, holder: Holder) -> Book:
        """Add a holder, or give one who holds it already a new end."""
        lease = self._lease(number)
        if lease.revoked:
            raise ValueError(f"Lease {number} is being taken back ({lease.revoked}); nobody can hold it any more.")
        return self._changed(number, lease.with_holder(holder))

    def let_go(self, number: int, holder: Holder) -> tuple[Book, Lease | None]:
        """Take a holder off; return the lease if that was its last. Whoever does not hold it changes nothing."""
        lease = self.leases.get(number)
        if lease is None:
            return self, None
        left = lease.without(holder)
        if left.holders:
            return self._changed(number, left), None
        return self._changed(number, None), left

    def ended(self, holder: Holder) -> tuple[Book, tuple[Lease, ...]]:
        """Take a holder off all that it holds; return the leases that this released."""
        return self._without(lambda h: h.is_same(holder))

    def job_ended(self, number: int) -> tuple[Book, tuple[Lease, ...]]:
        """Take a job and the sessions inside it off all that they hold; what it declared to outlive it stays."""
        return self._without(lambda h: h.job == number and h.kind is not Holding.ARTIFACT)

    def expired(self, now: float) -> tuple[Book, tuple[Lease, ...]]:
        """Take off those whose end has come."""
        return self._without(lambda h: h.until is not None and h.until <= now)

    def revoke(self, number: int, why: str) -> Book:
        """Say that a lease is to be given back. It counts until its holders, who are to be ended first, have ended."""
        return self._changed(number, replace(self._lease(number), revoked=why))

    def follow(self, number: int, charged: Mapping[DeviceKey, int]) -> Book:
        """Set an estimate's bytes to what is charged by now; a promise keeps its own."""
        lease = self._lease(number)
        if lease.promise:
            raise ValueError(f"Lease {number} is a promise of {lease.bytes} bytes and follows no charge.")
        parts = tuple(replace(part, bytes=charged.get(part.device, part.bytes)) for part in lease.parts)
        return self._changed(number, replace(lease, parts=parts))

    def declare(self, device: DeviceKey, declared: int) -> Book:
        """Set a device's capacity. Below what is leased, those who are there stay and nothing new is granted."""
        return self._slot(device, replace(self.slots[device], declared=declared))

    def measure(self, rooms: Mapping[DeviceKey, int | None]) -> Book:
        """Set the measured rooms that a reading gave; None: no probe reads the device."""
        slots = dict(self.slots)
        for device, room in rooms.items():
            if device in slots and slots[device].measured != room:
                slots[device] = replace(slots[device], measured=room)
        return replace(self, slots=slots)

    def close(self, node: str, why: str) -> Book:
        """Grant nothing more on a node; those who are there stay. With "" it is open again."""
        slots = {d: replace(s, shut=why) if d[0] == node else s for d, s in self.slots.items()}
        return replace(self, slots=slots)

    @property
    def overbooked(self) -> dict[DeviceKey, int]:
        """Return the devices of which more is leased than declared, and by how much."""
        return {device: slot.leased - slot.declared for device, slot in self.slots.items() if slot.booked < 0}

    def on(self, device: DeviceKey) -> tuple[Lease, ...]:
        """Return the leases on a device, oldest first."""
        return tuple(lease for lease in self.leases.values() if any(part.device == device for part in lease.parts))

    def _lease(self, number: int) -> Lease:
        if (lease := self.leases.get(number)) is None:
            raise NoLease(f"There is no lease {number}: its last holder has let go.")
        return lease

    def _slot(self, device: DeviceKey, slot: Slot) -> Book:
        return replace(self, slots={**self.slots, device: slot})

    def _without(self, lets_go: Callable[[Holder], bool]) -> tuple[Book, tuple[Lease, ...]]:
        book, released = self, []
        for lease in self.leases.values():
            for holder in filter(lets_go, lease.holders):
                book, gone = book.let_go(lease.id, holder)
                if gone is not None:
                    released.append(lease)
        return book, tuple(released)

    def _changed(self, number: int, lease: Lease | None) -> Book:
        """Return the book with a lease put in, replaced or taken out, and its devices' slots brought up to date."""
        leases, slots = dict(self.leases), dict(self.slots)
        before = leases.get(number)
        if before is not None:
            for part in before.parts:
                slots[part.device] = _without(slots[part.device], part, before)
        if lease is None:
            leases.pop(number, None)
        else:
            leases[number] = lease
            for part in lease.parts:
                slots[part.device] = _with(slots[part.device], part, lease)
        return Book(slots, leases, self.last)


def opened(slots: Iterable[Slot], leases: Iterable[Lease] = ()) -> Book:
    """Return the book of these leases on devices that are given without any.

    Raises ValueError where a device is there twice, or two share an id on a node.
    """
    found: dict[DeviceKey, Slot] = {}
    ids: set[tuple[str, str, int]] = set()
    for slot in slots:
        called = slot.device[0], slot.kind.value, slot.id
        if slot.device in found or called in ids:
            raise ValueError(f"{slot.name} of {slot.device[0]} is declared twice.")
        found[slot.device] = slot
        ids.add(called)
    book = Book(found)
    for lease in leases:
        book = replace(book._changed(lease.id, lease), last=max(book.last, lease.id))
    return book


def _with(slot: Slot, part: Part, lease: Lease) -> Slot:
    holders = (*slot.holders, *lease.names)
    return slot.changed(slot.leased + part.bytes, slot.leases + 1, slot.alone or part.alone, holders)


def _without(slot: Slot, part: Part, lease: Lease) -> Slot:
    left = list(slot.holders)
    for name in lease.names:
        left.remove(name)
    return slot.changed(slot.leased - part.bytes, slot.leases - 1, slot.alone and not part.alone, tuple(left))
