"""In a play: which devices a group takes together. It leads with one of them, the others are found when it starts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log2

from placement.domain.admission.demands import Demand
from placement.domain.admission.device_sets import together
from placement.domain.admission.places import Board, Place, place_of
from placement.domain.world.requests import Request


@dataclass(frozen=True, slots=True)
class Spot:
    """One place for one demand. ``lead`` and ``ram`` number pools (``ram`` -1: the lead is all there is).

    A group leads with each of its devices in turn; ``count`` of the ``others`` have to have as much room: all that it
    may take on the node, its lead among them.
    """

    place: Place
    node: int
    lead: int
    need: int
    ram: int
    ram_need: int
    alone: bool  # nobody else on the device
    whole: bool  # nobody else on the machine
    cold: bool  # takes all that is left until it settles
    others: tuple[int, ...] = ()
    count: int = 0


def shape(demand: Demand) -> tuple[object, ...]:
    """Return what groups that are played as one have alike: how many devices of which, and bytes within a twelfth."""
    request, asked = demand.request, demand.vram or demand.ram
    where = request.node, request.device, request.kind, request.backend, request.engine, request.among
    return request.min_devices, request.exclusive, where, *(_step(ask.need) for ask in (asked, demand.ram))


def _step(amount: int | None) -> int | None:
    """Return the eighth of a doubling in which an amount is."""
    return None if amount is None else int(8 * log2(amount + 1))


def leads(board: Board, request: Request) -> Iterator[Place]:
    """Yield each device that a group could lead with, as a place of its own."""
    seen = set()
    known = [(place.node, place.devices) for place in board.places(request)]
    for node, devices in (*known, *board.crowds(request)):
        for device in devices:
            if (node.name, device.uuid) not in seen:
                seen.add((node.name, device.uuid))
                yield place_of(node, (device,), board.many)


def grouped(found: Sequence[Spot], least: int) -> Iterator[Spot]:
    """Yield the places of one device as those of a group of as few as it asks for, where its node has so many."""
    by_node: defaultdict[int, list[Spot]] = defaultdict(list)
    for spot in found:
        by_node[spot.node].append(spot)
    for spots in by_node.values():
        known: dict[tuple[object, ...], tuple[int, ...]] = {}  # by what decides with whom a device is one group
        for spot in spots:
            own = spot.place.devices[0]
            sort = own.kind, own.measurable, own.backends
            if sort not in known:
                known[sort] = tuple(other.lead for other in spots if together(own, other.place.devices[0]))
            if len(known[sort]) >= least:
                yield replace(spot, others=known[sort] if least > 1 else (), count=least - 1)


def companions(
    spot: Spot, free: Sequence[int], booked: Sequence[int], shut: Sequence[int], there: Sequence[int], only: set[int]
) -> tuple[int, ...] | None:
    """Return the pools that a group takes beside its lead, those with the least left over; None: too few are open."""
    fit = []
    for pool in spot.others:
        room = free[pool] if free[pool] < booked[pool] else booked[pool]
        if pool == spot.lead or room < spot.need or shut[pool] or ((spot.alone or pool in only) and there[pool]):
            continue
        fit.append((-room if spot.cold else room, pool))
    return None if len(fit) < spot.count else tuple(pool for _, pool in sorted(fit)[: spot.count])
