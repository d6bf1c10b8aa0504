"""Where an ask is served: best fit by the room there is now, on what an admin declared and on what is measured.

For each number of devices in the ask's order: where the declared capacities allow it at all, the largest share goes
to the accepting device that keeps the least, ties by the smaller id. The first number that fits now is granted; where
one is possible but none fits the ask is unavailable, otherwise impossible, and for good.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from placement.domain.asks import Ask
from placement.domain.devices import Backend, DeviceKey, Kind


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
        booked = self.declared - self.leased
        return booked if self.measured is None or self.measured >= booked else self.measured

    @property
    def most(self) -> int:
        """Return the room of the idle device."""
        if self.measured_most is None or self.measured_most >= self.declared:
            return self.declared
        return self.measured_most


@dataclass(frozen=True, slots=True)
class Bound:
    """Both rooms before a grant; ``measured`` None: no probe reads the device, and it is granted as booked alone."""

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
class Member:
    """One device of a grant, with its bytes and the rooms that it was taken from."""

    device: DeviceKey
    id: int
    bytes: int
    bound: Bound


@dataclass(frozen=True, slots=True)
class Granted:
    """Take these devices, all of them: in the order in which they were chosen, a device with a largest share first."""

    members: tuple[Member, ...]
    alone: bool  # the holder has them to itself

    @property
    def primary(self) -> Member:
        return self.members[0]

    @property
    def booked_alone(self) -> bool:
        """Return whether no probe reads one of the devices, so that declarations alone spoke for it."""
        return any(member.bound.measured is None for member in self.members)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why one device that could serve the ask does not now: the rule, both rooms, and who is in the way."""

    device: DeviceKey
    name: str
    rule: Rule
    need: int
    bound: Bound
    holders: tuple[str, ...]
    why: str = ""  # of a device that is shut


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Not now: ``count`` devices with ``need`` bytes each come nearest, ``ready`` of them would accept it."""

    count: int
    need: int
    ready: int
    obstacles: tuple[Obstacle, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Most:
    """What a device could give at most, idle; ``serves``: it is of the kind, and where it was asked for."""

    device: DeviceKey
    name: str
    bytes: int
    serves: bool


@dataclass(frozen=True, slots=True)
class Impossible:
    """Never: what each device could give at most, and the arithmetic in one sentence."""

    devices: tuple[Most, ...]
    sentence: str


Answer = Granted | Unavailable | Impossible


def supports(ask: Ask, slot: Slot) -> bool:
    """Return whether the device is of the kind that is asked for, and where it is asked for; whatever its room."""
    return (
        slot.kind is ask.kind
        and ask.backend in slot.backends
        and (ask.device_id is None or slot.id == ask.device_id)
        and (ask.node is None or slot.device[0] == ask.node)
        and (ask.label is None or ask.label in slot.labels)
    )


def needs_alone(ask: Ask, slot: Slot) -> bool:
    """Return whether the ask would have the device to itself."""
    return ask.exclusive or slot.exclusive_only
