"""Of many devices alike: which of them a group could have first, later on, for its plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from placement.domain.admission.demands import Ask, Demand
from placement.domain.admission.device_sets import thinned
from placement.domain.admission.many_devices import Set, asked_of_each, most_ever, sizes
from placement.domain.admission.places import Board, Place, place_of
from placement.domain.planning.future import first_room, line, wanted
from placement.domain.world.requests import Request
from placement.domain.world.snapshot import Device, KeptPlan


def soonest_sets(board: Board, demand: Demand, devices: Sequence[Device], starts: Mapping[str, float]) -> Iterator[Set]:
    """Yield the set that is free first at each number of devices; ``starts``: when nobody's presence is in the way.

    What is divided by room hangs on the set: there, the devices that could give most, and those that are empty first.
    """
    request, tried = demand.request, sizes(demand.request, len(devices))
    if request.group_memory is None:
        few = [count for count in tried[:1] if request.min_devices > 1]  # one device is free before two of them are
    else:
        few = thinned(tried)
    if not request.even:
        most = sorted(devices, key=lambda device: (-most_ever(board, device), device.index))
        empty = sorted(devices, key=lambda device: (_emptied(board, device, starts[device.uuid]), device.index))
        yield from (by[:count] for count in few for by in (most, empty))
        return
    known: dict[Ask, list[Device]] = {}
    for count in few:
        ask = asked_of_each(demand, count)
        if ask not in known:
            known[ask] = _by_second(board, request, ask, devices, starts)
        if len(known[ask]) >= count:
            yield known[ask][:count]


def kept_set(board: Board, request: Request, kept: KeptPlan) -> list[Place]:
    """Return the place of a plan that was made for some of many devices alike; [] where it may have them no more."""
    for node, alike in board.crowds(request):
        some = tuple(device for device in alike if device.uuid in kept.devices)
        if node.name == kept.node and len(some) == len(kept.devices) and len(some) in sizes(request, len(alike)):
            return [place_of(node, some, board.many)]
    return []


def _by_second(
    board: Board, request: Request, ask: Ask, devices: Sequence[Device], starts: Mapping[str, float]
) -> list[Device]:
    """Return the devices that will have that much, those first that have it first."""
    found = []
    for device in devices:
        part = board.device_part(ask, device, request.exclusive)
        if part.at_most is not None and part.least > part.at_most:
            continue
        at = first_room(starts[device.uuid], [(line(board, part.ledger), wanted(part), part.margin)])
        if at is not None:
            found.append((at, device.index, device))
    return [device for *_, device in sorted(found, key=lambda one: one[:2])]


def _emptied(board: Board, device: Device, start: float) -> float:
    """Return the second from which nobody who runs now is on the device."""
    return max([start, *line(board, board.ledger(device.pool, device.measurable)).seconds[-1:]])
