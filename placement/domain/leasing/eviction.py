"""Which idle residents go so that a request is granted: fewest, then least beyond the need, then least recently used.

Every set of devices counts: the allocator itself is asked about the devices as they would be after an eviction, so what
is evicted is always enough, in the same cycle. Where that could not be, nobody is evicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from placement.domain.leasing.allocator import Granted, place
from placement.domain.leasing.eviction_search import LOOKS, Eviction, Rank, Search, best
from placement.domain.leasing.idle_residents import Idle, Unit, units_of, without
from placement.domain.leasing.slots import Slot, supports
from placement.domain.world.asks import Ask, counts, shares
from placement.domain.world.devices import DeviceKey

__all__ = ["Eviction", "Idle", "plan", "without"]
FEW = 8  # residents: all their sets are looked through


def plan(
    ask: Ask, slots: Iterable[Slot], residents: Iterable[Idle], failed: frozenset[int] = frozenset()
) -> Eviction | None:
    """Return who goes so that the ask is granted; None where nobody need, or where it would not help.

    ``failed``: residents whose stop failed. They stay, with what they hold, and the plan is made without them.
    """
    there = tuple(slots)
    if isinstance(place(ask, there), Granted):
        return None
    units = units_of(ask, there, residents, failed)
    if len(units) > FEW and ask.even and _each_on_its_own(ask, there, units):
        return by_device(ask, there, units)
    return best(Search(ask, there, units))


def _each_on_its_own(ask: Ask, slots: Sequence[Slot], units: Sequence[Unit]) -> bool:
    """Return whether making room on one device makes none on another that the ask could take, too."""
    useful = {slot.device for slot in slots if supports(ask, slot)}
    return ask.max_devices == 1 or all(sum(part.device in useful for part in unit.parts) == 1 for unit in units)


@dataclass(frozen=True, slots=True)
class _Way:
    """How one device makes room for a share: at what price, by whose going."""

    rank: Rank
    units: tuple[Unit, ...] = ()
    exact: bool = True


def by_device(ask: Ask, slots: Sequence[Slot], units: Sequence[Unit]) -> Eviction | None:
    """Return the best plan where devices make room independently: each at its least price, and the cheapest of them."""
    whole, exact = Search(ask, slots, units), True
    ways: dict[tuple[DeviceKey, int], _Way | None] = {}

    def cheapest(node: str, count: int, share: int) -> list[_Way]:
        found = []
        for slot in slots:
            if slot.device[0] != node or not supports(ask, slot):
                continue
            if (slot.device, share) not in ways:
                ways[slot.device, share] = _way(ask, slot, units, share)
            way = ways[slot.device, share]
            if way is not None:
                found.append(way)
        return sorted(found, key=lambda way: way.rank)[:count] if len(found) >= count else []

    for node in sorted({slot.device[0] for slot in slots}):
        for count in counts(ask):
            sizes = shares(ask, count)
            chosen = cheapest(node, count, sizes[0])
            if not chosen:
                continue
            gone = {unit.members[0].lease: unit for way in chosen for unit in way.units}
            granted = whole.granted(tuple(gone.values()))
            if granted is not None:
                whole.keep(tuple(gone.values()), granted)
            exact = exact and all(way.exact for way in chosen)
            if sizes[-1] < sizes[0]:  # a byte less on some of them: is anybody spared by it?
                exact = exact and [w.rank[0] for w in cheapest(node, count, sizes[-1])] == [w.rank[0] for w in chosen]
    return None if whole.best is None else replace(whole.best[1], exact=exact)


def _way(ask: Ask, slot: Slot, units: Sequence[Unit], share: int) -> _Way | None:
    there = tuple(unit for unit in units if any(part.device == slot.device for part in unit.parts))
    alone = Ask(ask.kind, ask.backend, group_bytes=share if ask.exclusive else max(1, share), exclusive=ask.exclusive)
    if isinstance(place(alone, [slot]), Granted):
        return _Way((0, 0, 0, [], []))
    search = Search(alone, [slot], there, LOOKS // 4)
    found = best(search)
    if found is None or search.best is None:
        return None
    gone = set(found.residents)
    return _Way(search.best[0], tuple(u for u in there if u.members[0].id in gone), found.exact)
