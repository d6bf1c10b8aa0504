"""Which idle residents go so that a request is granted: fewest, then least beyond the need, then least recently used.

Every set of devices counts: the allocator itself is asked about the devices as they would be after an eviction, so what
is evicted is always enough, in the same cycle. Where that could not be, nobody is evicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from placement.domain.allocator import Granted, place
from placement.domain.asks import Ask
from placement.domain.devices import DeviceKey
from placement.domain.leases import Part
from placement.domain.slots import Slot, supports

_Rank = tuple[int, int, list[tuple[float, float]], list[int]]
LOOKS = 4000  # questions to the allocator; a search that takes more ends with the best that it has


@dataclass(frozen=True, slots=True)
class Idle:
    """A resident that nobody uses. ``lease``: what it holds; residents may share one, and then go together.

    ``others``: somebody who is no idle resident holds the lease, too, so stopping the resident would free nothing.
    ``measured`` are its bytes by device as they are seen; None: those of its lease. Times are seconds; the smaller is
    the older.
    """

    id: int
    lease: int
    parts: tuple[Part, ...]
    used: float
    created: float = 0.0
    others: bool = False
    measured: Mapping[DeviceKey, int] | None = None


@dataclass(frozen=True, slots=True)
class Eviction:
    """Who goes, oldest use first, and what is granted then. ``freed`` and ``excess`` are bytes.

    ``exact``: no better plan exists; False where there were too many to look at them all.
    """

    residents: tuple[int, ...]
    freed: int
    excess: int
    granted: Granted
    exact: bool = True


@dataclass(frozen=True, slots=True)
class _Unit:
    """Residents that share one lease."""

    members: tuple[Idle, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.members[0].parts

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    @property
    def ages(self) -> tuple[tuple[float, float, int], ...]:
        return tuple(_age(one) for one in self.members)

    @property
    def weighs(self) -> int:
        return len(self.members)

    @property
    def footprint(self) -> object:
        """Return what is equal for those of which only the least recently used need be looked at first."""
        seen = tuple(tuple(sorted((one.measured or {}).items())) if one.measured else None for one in self.members)
        return self.parts, seen


def plan(
    ask: Ask, slots: Iterable[Slot], residents: Iterable[Idle], failed: frozenset[int] = frozenset()
) -> Eviction | None:
    """Return who goes so that the ask is granted; None where nobody need, or where it would not help.

    ``failed``: residents whose stop failed. They stay, with what they hold, and the plan is made without them.
    """
    there = tuple(slots)
    if isinstance(place(ask, there), Granted):
        return None
    units = _units(ask, there, residents, failed)
    search = _Search(ask, there, units)
    if search.granted(units) is None:
        return None
    for size in range(1, sum(unit.weighs for unit in units) + 1):
        if search.may(units, (), size):
            search.look((), units, size)
            if search.best is not None:
                return replace(search.best[1], exact=search.looks > 0)
            if search.looks <= 0:
                break
    return _one_by_one(search)


def _units(ask: Ask, slots: Sequence[Slot], residents: Iterable[Idle], failed: frozenset[int]) -> tuple[_Unit, ...]:
    """Return what can be freed where the ask could be served, the largest first and of the same the oldest."""
    useful = {slot.device for slot in slots if supports(ask, slot)}
    leases: dict[int, list[Idle]] = {}
    for one in residents:
        leases.setdefault(one.lease, []).append(one)
    units = [
        _Unit(tuple(sorted(some, key=_age)))
        for some in leases.values()
        if not any(one.others or one.id in failed for one in some)
        and any(part.device in useful for part in some[0].parts)
    ]
    return tuple(sorted(units, key=lambda unit: (-unit.bytes, unit.ages)))


class _Search:
    """Looks through sets of units of one size; the allocator says which are enough."""

    def __init__(self, ask: Ask, slots: Sequence[Slot], units: Sequence[_Unit]) -> None:
        self.ask, self.slots, self.units = ask, slots, units
        self.before = {slot.device: slot for slot in slots}
        self.looks = LOOKS
        self.best: tuple[_Rank, Eviction] | None = None

    def granted(self, chosen: Sequence[_Unit]) -> Granted | None:
        """Return what would be granted without these."""
        self.looks -= 1
        found = place(self.ask, without(self.slots, (one for unit in chosen for one in unit.members)))
        return found if isinstance(found, Granted) else None

    def may(self, left: Sequence[_Unit], chosen: Sequence[_Unit], size: int) -> bool:
        """Return whether ``size`` more residents could do at best: on each device those that free most of it."""
        slots = without(self.slots, (one for unit in chosen for one in unit.members))
        self.looks -= 1
        return isinstance(place(self.ask, [_hoped(slot, left, size) for slot in slots]), Granted)

    def look(self, chosen: tuple[_Unit, ...], left: Sequence[_Unit], size: int) -> None:
        """Try each way to add units with ``size`` residents in all."""
        if size == 0:
            found = self.granted(chosen)
            if found is not None:
                self.keep(chosen, found)
            return
        passed: set[object] = set()
        for number, unit in enumerate(left):
            if self.looks <= 0:
                return
            # Of those that free the same only the oldest comes next: with another in its place nothing is better.
            if unit.weighs > size or unit.footprint in passed:
                continue
            passed.add(unit.footprint)
            more, rest = (*chosen, unit), left[number + 1 :]
            if size == unit.weighs or self.may(rest, more, size - unit.weighs):
                self.look(more, rest, size - unit.weighs)

    def keep(self, chosen: Sequence[_Unit], granted: Granted) -> None:
        """Keep what is enough, if nothing better is known."""
        members = sorted((one for unit in chosen for one in unit.members), key=_age)
        freed = sum(unit.bytes for unit in chosen)
        excess = max(0, freed - sum(self._short(member.device, member.bytes) for member in granted.members))
        used = sorted(((one.used, one.created) for one in members), reverse=True)
        rank: _Rank = (excess, freed, used, [one.id for one in members])
        if self.best is None or rank < self.best[0]:
            self.best = rank, Eviction(tuple(one.id for one in members), freed, excess, granted)

    def _short(self, device: DeviceKey, share: int) -> int:
        """Return how many bytes a device lacked for its share."""
        slot = self.before[device]
        if slot.leases and (self.ask.exclusive or slot.exclusive_only or slot.alone):
            return max(slot.leased, 1)  # everybody had to go
        return max(0, share - slot.room)


def _one_by_one(search: _Search) -> Eviction | None:
    """Return a plan that is enough and in which nobody goes in vain, where there were too many to look at them all."""
    chosen = list(search.units)
    for unit in sorted(search.units, key=lambda u: (u.bytes, [-age[0] for age in u.ages])):
        fewer = [one for one in chosen if one is not unit]
        if search.granted(fewer) is not None:
            chosen = fewer
    found = search.granted(chosen)
    if found is None:
        return None
    search.keep(chosen, found)
    return None if search.best is None else replace(search.best[1], exact=False)


def without(slots: Sequence[Slot], gone: Iterable[Idle]) -> tuple[Slot, ...]:
    """Return the devices as they are once these residents have gone; what they shared is freed once."""
    leases = {one.lease: one for one in gone}
    return tuple(_freed(slot, leases.values()) for slot in slots)


def _age(one: Idle) -> tuple[float, float, int]:
    return one.used, one.created, one.id


def _freed(slot: Slot, gone: Iterable[Idle]) -> Slot:
    parts = [(one, part) for one in gone for part in one.parts if part.device == slot.device]
    if not parts:
        return slot
    return replace(
        slot,
        leased=slot.leased - sum(part.bytes for _, part in parts),
        leases=slot.leases - len(parts),
        alone=slot.alone and not any(part.alone for _, part in parts),
        measured=None if slot.measured is None else slot.measured + sum(_seen(*pair) for pair in parts),
    )


def _hoped(slot: Slot, left: Sequence[_Unit], size: int) -> Slot:
    """Return a device without the ``size`` largest of these, in each of its ledgers by itself."""
    parts = [(unit, part) for unit in left for part in unit.parts if part.device == slot.device]
    if not parts:
        return slot
    leased = sorted((part.bytes for _, part in parts), reverse=True)[:size]
    seen = sorted((_seen(unit.members[0], part) for unit, part in parts), reverse=True)[:size]
    return replace(
        slot,
        leased=slot.leased - sum(leased),
        leases=slot.leases - min(size, len(parts)),
        alone=slot.alone and not any(part.alone for _, part in parts),
        measured=None if slot.measured is None else slot.measured + sum(seen),
    )


def _seen(one: Idle, part: Part) -> int:
    return part.bytes if one.measured is None else one.measured.get(part.device, 0)
