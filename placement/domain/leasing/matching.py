"""Which devices of one node serve an ask, and with how many bytes each: best fit, by figures alone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from placement.domain.leasing.slots import Slot
from placement.domain.world.asks import Ask
from placement.domain.world.requests import by_room as divided

Entry = tuple[int, int, str, Slot]
"""A device and its bytes of room: room, id, UUID, slot. Sorted, the tightest comes first, then the smaller id."""
Share = tuple[Entry, int]


def match(entries: Sequence[Entry], ask: Ask, count: int) -> list[Share] | None:
    """Return ``count`` of the sorted entries with their shares, largest first; None where there are too few."""
    if len(entries) < count:
        return None
    return evenly(entries, ask, count) if ask.even else by_room(entries, ask, count)


def evenly(entries: Sequence[Entry], ask: Ask, count: int) -> list[Share] | None:
    """Give each share, largest first, to the tightest device that has room for it.

    Shares are one byte apart at most, so whoever takes from the tightest on finds a division if there is one.
    """
    each, larger = divmod(ask.group_bytes, count)
    each += ask.per_device_bytes
    first = bisect_left(entries, (each,))
    if not larger:
        chosen = entries[first : first + count]
        return [(entry, each) for entry in chosen] if len(chosen) == count else None
    above = bisect_left(entries, (each + 1,), first)
    large = entries[above : above + larger]
    exact = entries[first : min(above, first + count - larger)]
    after = above + larger
    small = (*exact, *entries[after : after + count - larger - len(exact)])
    if len(large) + len(small) < count or len(large) < larger:
        return None
    return [(entry, each + 1) for entry in large] + [(entry, each) for entry in small]


def by_room(entries: Sequence[Entry], ask: Ask, count: int) -> list[Share] | None:
    """Give each device the bytes that every one gets, and divide the rest in proportion to what room that leaves.

    Of the devices in order of their room, the tightest ``count`` neighbours that together have room are taken: if
    any ``count`` devices have, the roomiest do, and they are neighbours. With one device this is the even division.
    """
    each, asked = ask.per_device_bytes, ask.group_bytes
    usable = entries[bisect_left(entries, (each,)) :]
    spare = [entry[0] - each for entry in usable]
    total = sum(spare[:count])
    for last in range(count, len(usable) + 1):
        if total >= asked:
            start = last - count
            return _proportional(usable[start:last], spare[start:last], each, asked)
        if last < len(usable):
            total += spare[last] - spare[last - count]
    return None


def _proportional(entries: Sequence[Entry], spare: Sequence[int], each: int, asked: int) -> list[Share]:
    """Divide ``asked`` by ``spare``, to the byte."""
    given = [(entry, each + part) for entry, part in zip(entries, divided(asked, spare), strict=True)]
    return sorted(given, key=lambda share: (-share[1], share[0][1:3]))
