"""One device as the allocator sees it: the room that its two ledgers leave, and what may keep an ask from it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from placement.domain.world.asks import Ask
from placement.domain.world.devices import Backend, DeviceKey, Kind


class Ledger(enum.StrEnum):
    """Which of the two rooms is the smaller one, and so decides; of two equal ones the booked."""

    BOOKED = "booked"
    MEASURED = "measured"


class Rule(enum.StrEnum):
    """What keeps an ask from a device that could serve it."""

    SHUT = "shut"  # nothing new starts there
    HELD_ALONE = "held alone"  # somebody has it to himself
    NOT_EMPTY = "not empty"  # asked for alone, and somebody is there
    BOOKED = "booked"  # the leases leave too little of what is declared
    MEASURED = "measured"  # too little is measured free


@dataclass(frozen=True, slots=True)
class Bound:
    """Both rooms of a device; ``measured`` None: no probe reads it, and what is declared speaks alone."""

    booked: int
    measured: int | None

    @property
    def ledger(self) -> Ledger:
        """Return which of the two decided."""
        return Ledger.BOOKED if self.measured is None or self.measured >= self.booked else Ledger.MEASURED

    @property
    def room(self) -> int:
        """Return the bytes that could be given."""
        return self.booked if self.measured is None else min(self.booked, self.measured)

    @property
    def by(self) -> int | None:
        """Return by how many bytes the one that decided is the smaller, None where nothing is measured."""
        return None if self.measured is None else abs(self.booked - self.measured)


@dataclass(frozen=True, slots=True)
class Slot:
    """One device as the allocator sees it; bytes.

    ``measured`` is free less what is kept and what others will still take, None where no probe reads the device;
    ``measured_most`` is the same on the idle device, None where that is not known. ``holders`` are the names of those
    with a live lease there, ``users`` of those who take of the measured room. ``alone``: a holder has it to himself.
    ``shut`` says why nothing new starts there, "" where it may.
    """

    device: DeviceKey
    id: int
    kind: Kind
    backends: tuple[Backend, ...]
    declared: int
    leased: int = 0
    leases: int = 0
    alone: bool = False
    measured: int | None = None
    measured_most: int | None = None
    exclusive_only: bool = False
    labels: frozenset[str] = frozenset()
    holders: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    shut: str = ""

    @property
    def name(self) -> str:
        """Return what people call it: ``gpu0``."""
        return f"{self.kind}{self.id}"

    @property
    def booked(self) -> int:
        """Return what the leases leave of the declared bytes; below zero where the declaration was lowered."""
        return self.declared - self.leased

    @property
    def room(self) -> int:
        """Return the smaller of booked and measured room."""
        booked, measured = self.declared - self.leased, self.measured
        return booked if measured is None or measured >= booked else measured

    @property
    def bound(self) -> Bound:
        """Return both rooms."""
        return Bound(self.booked, self.measured)

    @property
    def available(self) -> int:
        """Return what a shared ask could get there, as people are shown it: nothing beside somebody alone."""
        return 0 if self.alone or self.shut else max(0, self.room)

    @property
    def most(self) -> int:
        """Return the room of the idle device."""
        if self.measured_most is None or self.measured_most >= self.declared:
            return self.declared
        return self.measured_most

    def changed(self, leased: int, leases: int, alone: bool, holders: tuple[str, ...]) -> Slot:
        """Return the slot with other leases; spelled out, as ``replace`` takes twice as long and grants are many."""
        return Slot(
            *(self.device, self.id, self.kind, self.backends, self.declared, leased, leases, alone),
            *(self.measured, self.measured_most, self.exclusive_only, self.labels, holders, self.users, self.shut),
        )


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why one device that could serve the ask does not now: the rule, both rooms, and who is in the way."""

    device: DeviceKey
    name: str
    rule: Rule
    need: int
    bound: Bound
    holders: tuple[str, ...]
    why: str = ""  # of a device that is shut, or that takes one job at a time


@dataclass(frozen=True, slots=True)
class Most:
    """What a device could give at most, idle; ``serves``: it is of the kind, and where it was asked for."""

    device: DeviceKey
    name: str
    bytes: int
    serves: bool


def supports(ask: Ask, slot: Slot) -> bool:
    """Return whether the device is of the kind that is asked for, and where it is asked for; whatever its room."""
    return (
        slot.kind is ask.kind
        and ask.backend in slot.backends
        and (ask.device_id is None or slot.id == ask.device_id)
        and (ask.node is None or slot.device[0] == ask.node)
        and (ask.label is None or ask.label in slot.labels)
    )


def refused_by(ask: Ask, slot: Slot) -> Rule | None:
    """Return the rule that keeps the ask from the device whatever its bytes, None where only room decides."""
    if slot.shut:
        return Rule.SHUT
    if slot.alone:
        return Rule.HELD_ALONE
    if slot.leases and (ask.exclusive or slot.exclusive_only):
        return Rule.NOT_EMPTY
    return None


def accepts(ask: Ask, slot: Slot, share: int) -> bool:
    """Return whether a device that could serve the ask takes ``share`` bytes of it now."""
    return refused_by(ask, slot) is None and share <= slot.room
