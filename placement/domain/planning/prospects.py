"""Which place could serve the head of the queue first, later on: bare figures, so that many can be asked."""

from __future__ import annotations

from collections.abc import Iterator

from placement.domain.admission import checks
from placement.domain.admission.company import kept_out_by
from placement.domain.admission.decision import Check
from placement.domain.admission.demands import Demand, waiting_demand
from placement.domain.admission.gate import look
from placement.domain.admission.levels import Ask
from placement.domain.admission.many_devices import places
from placement.domain.admission.places import Board, Place, in_force
from placement.domain.admission.rooms import Kind, Rooms
from placement.domain.admission.spots import Several, Spot
from placement.domain.planning.bars import Bar, bar_for, is_of, to_plan
from placement.domain.planning.future import ENDLESS, ends, first_room, line, pressure, wanted
from placement.domain.planning.soonest_sets import kept_set, soonest_sets
from placement.domain.world.requests import Exclusive, Request
from placement.domain.world.snapshot import Running, Waiting


class Prospects:
    """Plans for the head; who has no prospect of one while the board stands as it does is told so at once."""

    def __init__(self, board: Board, rooms: Rooms) -> None:
        self._board, self._rooms = board, rooms
        self._hopes: dict[int, Hope] = {}

    def bar(self, waiting: Waiting) -> Bar | None:
        """Return the job's plan, None where it gets none."""
        kind, ask = self._rooms.kind(waiting.request), self._rooms.ask(waiting.estimate)
        hope = self._hopes.get(id(kind))
        if hope is None or hope.version != self._board.version:
            hope = self._hopes[id(kind)] = Hope(self._board, kind)
        if waiting.plan is None and (hope.refuses(ask[0][0], ask[1][0]) or ask in hope.none):
            return None
        demand = waiting_demand(waiting)
        places = self._chosen(waiting, demand, kind, hope)
        made = bar_for(self._board, waiting, [look(self._board, demand, place) for place in places]) if places else ""
        if isinstance(made, Bar):
            return made
        if waiting.plan is None:
            hope.none.add(ask)
        return None

    def _chosen(self, waiting: Waiting, demand: Demand, kind: Kind, hope: Hope) -> list[Place]:
        """Return the place that is free first, and that of a plan which the job already has."""
        soonest: tuple[float, tuple[str, int, str], Place] | None = None
        known = [(spot.place, start) for spot, start in hope.places]
        for place, start in (*known, *hope.sets(demand)):
            at = self._second(demand, place, start)
            if at is not None and (soonest is None or (at, place.order) < soonest[:2]):
                soonest = at, place.order, place
        kept = waiting.plan
        mine = [spot.place for spot in kind.spots if kept is not None and is_of(spot.place, kept)]
        if kept is not None and not mine:  # of many devices it is a set that was chosen once, and stays the plan's
            mine = kept_set(self._board, waiting.request, kept)
        return mine if soonest is None or soonest[2] in mine else [soonest[2], *mine]

    def _second(self, demand: Demand, place: Place, start: float) -> float | None:
        parts = self._board.parts(demand, place)
        if any(part.at_most is not None and part.least > part.at_most for part in parts):
            return None
        wants = [(line(self._board, part.ledger), wanted(part), part.margin) for part in parts]
        return first_room(start, wants, pressure(self._board, place.node))


class Hope:
    """The places of one request that the end of jobs can open, and bounds on what those will ever have."""

    __slots__ = ("board", "bounded", "crowds", "none", "places", "ram", "takes_device", "version", "vram")

    def __init__(self, board: Board, kind: Kind) -> None:
        self.board, self.version = board, board.version
        self.none: set[Ask] = set()
        request, asked = kind.request, kind.request.exclusive
        planned = {place.order for place in to_plan(kind.request, [spot.place for spot in kind.spots])}
        spots = [spot for spot in kind.spots if spot.place.order in planned]
        self.places = [(spot, start) for spot in spots if (start := _opens(board, spot, request)) is not None]
        crowds = [
            (crowd, [(s, at) for s in crowd if (at := _opens(board, s, request)) is not None]) for crowd in kind.crowds
        ]
        self.crowds = [(tuple(spot.place.devices[0] for spot in crowd), some) for crowd, some in crowds]
        few = max(2, kind.request.min_devices)
        there = [spot.place for spot, _ in self.places]
        for _, some in self.crowds:  # of so many none has more than the last of those that will have most
            joined = sorted((spot.place for spot, _ in some), key=lambda place: -_last(board, place, device=True))
            there += joined[few - 1 : few]
        self.ram = max((_last(board, place, device=False) for place in there), default=-1)
        self.vram = max((_last(board, place, device=True) for place in there), default=-1)
        even = kind.request.group_memory is None
        self.bounded = asked is Exclusive.NO and even and not any(spot.unified for spot, _ in self.places)
        self.takes_device = kind.takes_device

    def sets(self, demand: Demand) -> Iterator[tuple[Place, float]]:
        """Yield sets of many devices alike that are free soon, and the second from which nobody's presence is there."""
        for alike, some in self.crowds:
            starts = {spot.place.devices[0].uuid: at for spot, at in some}
            devices = [device for device in alike if device.uuid in starts]
            if devices:
                node = some[0][0].place.node
                for place in places(self.board, node, alike, soonest_sets(self.board, demand, devices, starts)):
                    yield place, max(starts[uuid] for uuid in place.uuids)

    def refuses(self, vram: int | None, ram: int | None) -> bool:
        """Return whether no place will ever have that much, by the bounds alone."""
        return self.bounded and ((ram or 0) > self.ram or (self.takes_device and (vram or 0) > self.vram))


def _last(board: Board, place: Place, *, device: bool) -> int:
    pools = [(place.node.ram, True)]
    if device and place.devices:
        pools = [(one.pool, one.measurable) for one in place.devices]
    lefts = [line(board, board.ledger(pool, measurable)).last().left(0) for pool, measurable in pools]
    return min(-1 if left is None else left for left in lefts)


def _opens(board: Board, spot: Spot | Several, request: Request) -> float | None:
    """Return the seconds until nobody's hold or presence is in the way there, None where that never ends."""
    place, wall = spot.place, board.snapshot.wall
    if any(not check.ok and check.code in ENDLESS for check in _always(board, spot)):
        return None
    start = 0.0
    for hold in (place.node.hold, *(device.hold for device in place.devices)):
        if hold is not None and in_force(hold, wall):
            if hold.until is None:
                return None
            start = max(start, hold.until - wall)
    until = ends(board, place.node.name)
    for r in _in_the_way(board, spot, request):
        start = max(start, until[r.job].bar)
    return start


def _always(board: Board, spot: Spot | Several) -> Iterator[Check]:
    place = spot.place
    yield from checks.standing_of(board, place)
    yield checks.reading_of(board, place.node.ram, None)
    if not spot.unified:
        yield from (checks.reading_of(board, device.pool, device) for device in place.devices)


def _in_the_way(board: Board, spot: Spot | Several, request: Request) -> Iterator[Running]:
    """Yield the jobs whose very presence keeps such a job out."""
    place, side = spot.place, spot.side
    if side.alone or (request.exclusive is Exclusive.MACHINE and side.jobs):
        yield from board.on_node(place.node.name)
    yield from kept_out_by(board, place, request)
