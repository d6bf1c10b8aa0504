"""Which sets are looked at on a node with more than eight devices alike: chosen for each demand, from the rooms now.

Each device is asked once. Of those with room the ones with the least left over are the gate's answer, so that few sets
stand for all; beside them those with the most room, and those that could give most with nobody there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from placement.domain.admission import checks
from placement.domain.admission.company import kept_out_by
from placement.domain.admission.demands import Ask, Demand, at_most, has_room, over
from placement.domain.admission.device_sets import thinned
from placement.domain.admission.places import Board, Place, place_of
from placement.domain.world.requests import Request
from placement.domain.world.snapshot import Device, Node

Set = Sequence[Device]


def all_places(board: Board, demand: Demand) -> tuple[Place, ...]:
    """Return every place that is looked at for a demand."""
    places = board.places(demand.request)
    more = chosen(board, demand) if board.crowds(demand.request) else ()
    if not more or (len(board.crowds(demand.request)) == 1 and not places):
        return more or places
    return tuple({place.order: place for place in (*places, *more)}.values())  # two may have several backends in common


def chosen(board: Board, demand: Demand, fitting: bool = False) -> tuple[Place, ...]:
    """Return the sets of nodes with many devices alike, as they stand now; ``fitting``: only where one has room."""
    found: list[Place] = []
    for number, (node, alike) in enumerate(board.crowds(demand.request)):
        memo, key = board.memo[node.name], ("sets", demand, number, fitting, board.aside)
        if key not in memo:
            memo[key] = tuple(places(board, node, alike, _sets(board, demand, node, alike, fitting)))
        found += memo[key]
    return tuple(found)


def places(board: Board, node: Node, alike: Set, sets: Iterator[Set]) -> Iterator[Place]:
    """Yield sets of devices as places, each once, in their node's order."""
    order = {device.uuid: number for number, device in enumerate(alike)}
    known = {tuple(sorted(order[device.uuid] for device in some)) for some in sets}
    return (place_of(node, tuple(alike[number] for number in some), board.many) for some in sorted(known))


def sizes(request: Request, devices: int) -> range:
    """Return how many of so many devices a group of several may take."""
    return range(max(2, request.min_devices), min(request.max_devices, devices) + 1)


def most_ever(board: Board, device: Device) -> int:
    """Return what a device could give with nobody there; before anything is known of it there is no bound."""
    most = at_most(board.ledger(device.pool, device.measurable), 0)
    return 1 << 62 if most is None else most


@dataclass(frozen=True, slots=True)
class _Rule:
    """How one demand chooses: ``ordered`` are the devices that may be taken, least left over first.

    ``holds`` says whether devices in this order have room for it together; ``tight`` which of them it takes.
    """

    ordered: list[Device]
    holds: Callable[[Set], bool]
    tight: Callable[[Set, int], Set | None]


def _sets(board: Board, demand: Demand, node: Node, alike: Set, fitting: bool) -> Iterator[Set]:
    request, vram = demand.request, demand.vram
    if vram is None:
        return
    there = [device for device in alike if _may_join(board, node, device, request)]
    together = request.group_memory is not None
    rule = _together(board, request, there) if together else _each(board, vram, request, there)
    every, apart = rule.ordered, [device for device in rule.ordered if device.uuid not in board.aside]
    tried = sizes(request, len(alike))
    fit = [count for count in tried if count <= len(every) and rule.holds(_roomiest(rule, vram, count))]
    if request.prefer_max:
        fit.reverse()
    elif not together:
        fit = fit[:1]  # with more it asks for no less of any of them
    for count in dict.fromkeys((*fit[:2], *fit[len(fit) // 2 :][:1], *fit[-1:])):
        yield from (found for some in (every, apart) if (found := rule.tight(some, count)) is not None)
        yield _roomiest(rule, vram, count)
    if fit or fitting:
        return
    few = thinned(tried) if together else tried[:1]
    left = {d.uuid: board.ledger(d.pool, d.measurable).left(vram.margin) or 0 for d in alike}
    here = {device.uuid for device in there}
    near = sorted(alike, key=lambda d: (d.uuid not in here, -left[d.uuid], d.index))
    ever = sorted(alike, key=lambda d: (-most_ever(board, d), d.index))
    yield from (by[:count] for by in (near, ever) for count in few)
    if together:  # the share that the smallest of them has to bear is least at a number of its own
        best = next((n for n in tried if _could(request, [most_ever(board, d) for d in ever[:n]])), None)
        yield from [] if best is None else [ever[:best]]


def _roomiest(rule: _Rule, vram: Ask, count: int) -> Set:
    return rule.ordered[:count] if vram.need is None else rule.ordered[-count:]


def _may_join(board: Board, node: Node, device: Device, request: Request) -> bool:
    """Return whether nobody's word or presence keeps a group off the device; remembered until somebody starts."""
    known: dict[str, bool] = board.memo[node.name].setdefault(("joins", request.exclusive, request.inside), {})
    if device.uuid not in known:
        place = place_of(node, (device,), board.many)
        works = all(check.ok for check in checks.standing_of(board, place))
        works = works and checks.reading_of(board, device.pool, device).ok
        known[device.uuid] = works and next(kept_out_by(board, place, request), None) is None
    return known[device.uuid]


def _each(board: Board, vram: Ask, request: Request, there: Set) -> _Rule:
    """Choose where each device is asked for the same: any of those that have room for it."""
    parts = {device.uuid: board.device_part(vram, device, request.exclusive) for device in there}
    fit = [device for device in there if has_room(parts[device.uuid])]
    fit.sort(key=lambda device: (over(parts[device.uuid]), device.index))
    return _Rule(fit, lambda some: True, lambda some, count: some[:count] if len(some) >= count else None)


def _together(board: Board, request: Request, there: Set) -> _Rule:
    """Choose where the devices share an amount, which is exact."""
    own, amount = request.per_device_memory or 0, request.group_memory or 0
    room = {}
    for device in there:
        left = board.ledger(device.pool, device.measurable).left(0)
        room[device.uuid] = -1 if left is None else min(left, most_ever(board, device))
    ordered = sorted(there, key=lambda device: (room[device.uuid], device.index))
    if not request.even:

        def holds(some: Set) -> bool:
            rooms = [room[device.uuid] - own for device in some]
            return rooms[0] > 0 and sum(rooms) >= amount

        def tight(some: Set, count: int) -> Set | None:
            rows = (some[first : first + count] for first in range(len(some) - count + 1))
            return next((row for row in rows if holds(row)), None)

        return _Rule(ordered, holds, tight)

    def divided(some: Set, count: int) -> Set | None:
        shares, taken, at = request.shares(count), [], 0
        passed: list[Device] = []  # too small for the larger shares, not for the others
        for share in shares:
            while at < len(some) and room[some[at].uuid] < share:
                passed.append(some[at])
                at += 1
            small = next((d for d in passed if room[d.uuid] >= share), None)
            if small is not None:
                passed.remove(small)
                taken.append(small)
            elif at < len(some):
                taken.append(some[at])
                at += 1
            else:
                return None
        return taken

    return _Rule(ordered, lambda some: divided(some, len(some)) is not None, divided)


def _could(request: Request, most: Sequence[int]) -> bool:
    """Return whether devices that could give so much could ever serve what they share; the largest first."""
    own = request.per_device_memory or 0
    if not request.even:
        return sum(most) - own * len(most) >= (request.group_memory or 0)
    return all(has >= share for has, share in zip(most, request.shares(len(most)), strict=True))


def could_hold(request: Request, rooms: Sequence[int]) -> bool:
    """Return whether devices with such rooms, the largest first, might have room for what a group shares."""
    own, amount = request.per_device_memory or 0, request.group_memory or 0
    tried = sizes(request, len(rooms))
    if request.even:
        return any(rooms[count - 1] >= amount // count + own for count in tried)
    sums = list(accumulate(rooms))
    return any(sums[count - 1] - own * count >= amount for count in tried)


def asked_of_each(demand: Demand, count: int) -> Ask:
    """Return what a group of so many asks of one device at most, where it is the same for all of them."""
    assert demand.vram is not None
    if demand.request.group_memory is None or not demand.request.even:
        return demand.vram
    return replace(demand.vram, need=demand.request.largest_share(count))
