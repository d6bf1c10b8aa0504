"""Where an ask is served: best fit by the room there is now, in what an admin declared and in what is measured.

For each number of devices in the ask's order the largest share goes to the accepting device that keeps the least,
ties by the smaller id. The first number that fits now is granted. Where none does, the ask is unavailable if the idle
devices could serve it, otherwise impossible, and for good. Nothing here changes anything: a grant is an answer, and
counts once a book has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from placement.domain.leasing import no_room
from placement.domain.leasing.matching import Entry, Share, match
from placement.domain.leasing.slots import Bound, Ledger, Most, Obstacle, Rule, Slot, accepts, refused_by, supports
from placement.domain.world.asks import Ask, counts
from placement.domain.world.devices import DeviceKey

__all__ = [
    "Answer",
    "Bound",
    "Granted",
    "Impossible",
    "Ledger",
    "Member",
    "Most",
    "Obstacle",
    "Rule",
    "Slot",
    "Unavailable",
    "accepts",
    "place",
    "possible",
    "refused_by",
    "supports",
]


@dataclass(frozen=True, slots=True)
class Member:
    """One device of a grant, with its bytes and the rooms that they are taken from."""

    device: DeviceKey
    id: int
    bytes: int
    bound: Bound


@dataclass(frozen=True, slots=True)
class Granted:
    """Take these devices, all of them: in the order in which they were chosen, one with a largest share first."""

    members: tuple[Member, ...]

    @property
    def primary(self) -> Member:
        """Return the first member: the tightest device that took a largest share."""
        return self.members[0]

    @property
    def booked_alone(self) -> bool:
        """Return whether no probe reads one of the devices, so that its declaration spoke alone."""
        return any(member.bound.measured is None for member in self.members)


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Not now, though the idle devices could: who is in the way is worked out when it is asked for."""

    ask: Ask
    slots: tuple[Slot, ...] = field(repr=False)

    @property
    def obstacles(self) -> tuple[Obstacle, ...]:
        """Return what stands against each device that could serve a part and does not now."""
        return no_room.obstacles(self.ask, self.slots)

    @property
    def sentence(self) -> str:
        """Return what is needed, how many devices have it, and who is in the way."""
        return no_room.unavailable(self.ask, self.slots)


@dataclass(frozen=True, slots=True)
class Impossible:
    """Never, as the devices are declared."""

    ask: Ask
    slots: tuple[Slot, ...] = field(repr=False)

    @property
    def devices(self) -> tuple[Most, ...]:
        """Return each declared device with what it could give at most."""
        return no_room.at_most(self.ask, self.slots)

    @property
    def sentence(self) -> str:
        """Return the arithmetic: what was asked, which devices exist, what each could give."""
        uneven = self.ask.even and _fits_idle(no_room.unevenly(self.ask), self.slots)
        return no_room.impossible(self.ask, self.slots, uneven)


Answer = Granted | Unavailable | Impossible


def place(ask: Ask, slots: Iterable[Slot]) -> Answer:
    """Return where the ask is served now, or why not. Each device is among the slots once, in any order."""
    known = tuple(slots)
    found = _first(ask, _open(ask, known))
    if found is not None:
        return Granted(tuple(Member(e[3].device, e[1], share, e[3].bound) for e, share in found))
    ordered = tuple(sorted(known, key=_order))
    return Unavailable(ask, ordered) if _fits_idle(ask, ordered) else Impossible(ask, ordered)


def possible(ask: Ask, slots: Iterable[Slot]) -> bool:
    """Return whether the idle devices could serve the ask."""
    return _fits_idle(ask, slots)


def _open(ask: Ask, slots: Sequence[Slot]) -> dict[str, list[Entry]]:
    """Return the devices of each node that may take part and have room now for the least that one could be asked for.

    The same as ``supports``, ``refused_by`` and ``Slot.room``, spelled out: calling them was half of a decision.
    """
    nodes: dict[str, list[Entry]] = {}
    kind, backend, number, exclusive = ask.kind, ask.backend, ask.device_id, ask.exclusive
    elsewhere = ask.node is not None or ask.label is not None
    least = ask.per_device_bytes + (ask.group_bytes // ask.max_devices if ask.even else 0)
    for slot in slots:
        if slot.kind is not kind or slot.alone or slot.shut or backend not in slot.backends:
            continue
        if (slot.leases and (exclusive or slot.exclusive_only)) or (number is not None and slot.id != number):
            continue
        if elsewhere and not supports(ask, slot):
            continue
        room, measured = slot.declared - slot.leased, slot.measured
        if measured is not None and measured < room:
            room = measured
        if room >= least:
            node, uuid = slot.device
            if node not in nodes:
                nodes[node] = []
            nodes[node].append((room, slot.id, uuid, slot))
    return nodes


def _fits_idle(ask: Ask, slots: Iterable[Slot]) -> bool:
    nodes: dict[str, list[Entry]] = {}
    for slot in slots:
        if supports(ask, slot):
            nodes.setdefault(slot.device[0], []).append((slot.most, slot.id, slot.device[1], slot))
    return _first(ask, nodes) is not None


def _first(ask: Ask, nodes: dict[str, list[Entry]]) -> Sequence[Share] | None:
    """Return the devices of the first number that some node can serve."""
    for entries in nodes.values():
        entries.sort()
    for count in counts(ask):
        found = [shares for entries in nodes.values() if (shares := match(entries, ask, count)) is not None]
        if found:
            return found[0] if len(found) == 1 else min(found, key=_left_over)
    return None


def _left_over(shares: Sequence[Share]) -> tuple[list[int], list[int], str]:
    """Return what the devices keep, in order of choice, then their ids and node: the least is the best fit."""
    return (
        [entry[0] - share for entry, share in shares],
        [entry[1] for entry, _ in shares],
        shares[0][0][3].device[0],
    )


def _order(slot: Slot) -> tuple[str, int, str]:
    return slot.device[0], slot.id, slot.device[1]
