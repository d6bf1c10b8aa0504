"""Looks through sets of idle residents for the best one that is enough, as far as so many questions go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from placement.domain.leasing.allocator import Granted, place
from placement.domain.leasing.idle_residents import Unit, age_of, hoped, without
from placement.domain.leasing.slots import Slot
from placement.domain.world.asks import Ask
from placement.domain.world.devices import DeviceKey

Rank = tuple[int, int, int, list[tuple[float, float]], list[int]]
LOOKS = 4000  # questions to the allocator; a search that takes more ends with the best that it has


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


class Search:
    """Looks through sets of units of one size; the allocator says which are enough."""

    def __init__(self, ask: Ask, slots: Sequence[Slot], units: Sequence[Unit], looks: int = LOOKS) -> None:
        self.ask, self.slots, self.units = ask, slots, units
        self.before = {slot.device: slot for slot in slots}
        self.looks = looks
        self.best: tuple[Rank, Eviction] | None = None

    def granted(self, chosen: Sequence[Unit]) -> Granted | None:
        """Return what would be granted without these."""
        self.looks -= 1
        found = place(self.ask, without(self.slots, (one for unit in chosen for one in unit.members)))
        return found if isinstance(found, Granted) else None

    def may(self, left: Sequence[Unit], chosen: Sequence[Unit], size: int) -> bool:
        """Return whether ``size`` more residents could do at best: on each device those that free most of it."""
        slots = without(self.slots, (one for unit in chosen for one in unit.members))
        self.looks -= 1
        return isinstance(place(self.ask, [hoped(slot, left, size) for slot in slots]), Granted)

    def look(self, chosen: tuple[Unit, ...], left: Sequence[Unit], size: int) -> None:
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

    def keep(self, chosen: Sequence[Unit], granted: Granted) -> None:
        """Keep what is enough, if nothing better is known."""
        members = sorted((one for unit in chosen for one in unit.members), key=age_of)
        freed = sum(unit.bytes for unit in chosen)
        excess = max(0, freed - sum(self._short(member.device, member.bytes) for member in granted.members))
        used = sorted(((one.used, one.created) for one in members), reverse=True)
        rank: Rank = (len(members), excess, freed, used, [one.id for one in members])
        if self.best is None or rank < self.best[0]:
            self.best = rank, Eviction(tuple(one.id for one in members), freed, excess, granted)

    def _short(self, device: DeviceKey, share: int) -> int:
        """Return how many bytes a device lacked for its share."""
        slot = self.before[device]
        if slot.leases and (self.ask.exclusive or slot.exclusive_only or slot.alone):
            return max(slot.leased, 1)  # everybody had to go
        return max(0, share - slot.room)


def best(search: Search) -> Eviction | None:
    """Return the best plan; None where even all of them are not enough."""
    if search.granted(search.units) is None:
        return None
    for size in range(1, sum(unit.weighs for unit in search.units) + 1):
        if search.may(search.units, (), size):
            search.look((), search.units, size)
            if search.best is not None:
                return replace(search.best[1], exact=search.looks > 0)
        if search.looks <= 0:
            break
    return _one_by_one(search)


def _one_by_one(search: Search) -> Eviction | None:
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
