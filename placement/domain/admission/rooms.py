"""The quick half of the gate: the verdict alone, from bare figures, without a sentence or an object per question.

It says exactly what ``gate.decide_on`` says (a property test holds the two together). Room only shrinks within a
cycle, so who fits nowhere once fits nowhere until it ends, and is not looked for again. Bytes throughout.
"""

from __future__ import annotations

from calibration.domain.estimate import Estimate
from placement.domain.admission.demands import demand_of, has_room
from placement.domain.admission.levels import Ask, Asked
from placement.domain.admission.many_devices import chosen, could_hold
from placement.domain.admission.places import Board, Place, place_of
from placement.domain.admission.spots import Evenly, Needs, Several, Side, Spot
from placement.domain.world.requests import Exclusive, Gpu, Request
from placement.domain.world.snapshot import Device, Node, Running, Waiting

_UNKNOWN: Asked = (None, 0, 0)

Fit = tuple[Spot | Several, Needs, bool]


class Kind:
    """Places that one request allows, with bounds above which a need is refused without a look at each."""

    __slots__ = (
        "bounded", "crowds", "evenly", "lowers", "ram", "refused", "request", "spots", "takes_device",
        "version", "vram",
    )  # fmt: skip

    def __init__(self, request: Request, spots: list[Spot | Several], crowds: list[list[Spot]], version: int) -> None:
        self.request, self.spots, self.crowds = request, spots, crowds
        self.evenly = request.gpu is Gpu.GROUP and request.group_memory is None
        self.lowers = request.exclusive is not _NO and not request.exact  # alone on a card, less may do
        self.takes_device = request.gpu is not Gpu.NONE
        self.refused: set[Ask] = set()
        self.tighten(version)

    def tighten(self, version: int) -> None:
        """Set the bounds to the most that an open place has now."""
        self.version = version
        wanted, inside = self.request.exclusive, self.request.inside
        there: list[Spot | Several] = [spot for spot in self.spots if not spot.closed(wanted, inside)]
        few = max(2, self.request.min_devices)
        for crowd in self.crowds:  # of so many of them none has more than the last of those that have most
            joined = sorted((spot for spot in crowd if not spot.closed(wanted, inside)), key=lambda spot: -spot.most)
            there += joined[few - 1 : few]
        self.ram = max((spot.side.ram.most_now for spot in there), default=-1)
        self.vram = max((spot.most for spot in there), default=-1)
        even = self.request.group_memory is None  # else the more devices, the less is asked of each
        self.bounded = wanted is Exclusive.NO and even and not any(spot.unified for spot in there)


class Rooms:
    """The figures of all places on a board, kept up with what the cycle starts."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.sides: dict[str, Side] = {}
        self._of_device: dict[tuple[str, str | None], Spot] = {}
        self._kinds: dict[Request, Kind] = {}
        self._most: dict[tuple[int, Exclusive, int], tuple[int, list[int]]] = {}
        self._by_places: dict[int, list[Spot | Several]] = {}
        self._crowds: dict[int, list[Spot]] = {}  # by the devices of the board that they are, so that it is one list
        # By identity first, as equal requests and estimates are mostly the same object; the object is kept with
        # its answer, so that its id cannot become another's.
        self._kind_by_id: dict[int, tuple[Request, Kind]] = {}
        self._ask_by_id: dict[int, tuple[Estimate, Ask]] = {}

    def kind(self, request: Request) -> Kind:
        """Return the places of a request."""
        known = self._kind_by_id.get(id(request))
        if known is not None:
            return known[1]
        found = self._kinds.get(request)
        if found is None:
            spots = self._spots_of(self.board.places(request))
            crowds = [self._crowd(node, alike) for node, alike in self.board.crowds(request)]
            found = self._kinds[request] = Kind(request, spots, crowds, self.board.version)
        self._kind_by_id[id(request)] = request, found
        return found

    def ask(self, estimate: Estimate) -> Ask:
        """Return the figures of an estimate that a verdict depends on."""
        known = self._ask_by_id.get(id(estimate))
        if known is None:
            known = self._ask_by_id[id(estimate)] = estimate, _ask(estimate)
        return known[1]

    def _spots_of(self, places: tuple[Place, ...]) -> list[Spot | Several]:
        """Return the figures of places that the board keeps: one list for all requests that may go there."""
        if id(places) not in self._by_places:
            self._by_places[id(places)] = [self._spot(place) for place in places]
        return self._by_places[id(places)]

    def _spot(self, place: Place) -> Spot | Several:
        return self._several(place) if len(place.devices) > 1 else self._single(place)

    def _several(self, place: Place) -> Several:
        members = tuple(self.member(place.node, device) for device in place.devices)
        return Several(place, members[0].side, members)

    def member(self, node: Node, device: Device) -> Spot:
        """Return the place of one device of a group."""
        known = self._of_device.get((node.name, device.uuid))
        return known or self._single(place_of(node, (device,), self.board.many))

    def _crowd(self, node: Node, alike: tuple[Device, ...]) -> list[Spot]:
        if id(alike) not in self._crowds:  # the board keeps them
            self._crowds[id(alike)] = [self.member(node, device) for device in alike]
        return self._crowds[id(alike)]

    def places(self, waiting: Waiting, kind: Kind, fitting: bool = False) -> list[Spot | Several]:
        """Return all that is looked at for a job: the places of its request, and the sets chosen for its demand."""
        if not kind.crowds:
            return kind.spots
        demand = demand_of(waiting.request, waiting.estimate)
        return [*kind.spots, *(self._several(place) for place in chosen(self.board, demand, fitting))]

    def _hopeless(self, kind: Kind) -> bool:
        """Return whether not even the devices alike that have most have room for what a group would share."""
        request = kind.request
        if request.min_devices == 1 or request.group_memory is None:
            return False
        crowds = (self._crowd(node, alike) for node, alike in self.board.alike(request))
        return not any(could_hold(request, self._most_of(crowd, request.exclusive, request.inside)) for crowd in crowds)

    def _most_of(self, crowd: list[Spot], wanted: Exclusive, inside: int) -> list[int]:
        """Return what the open devices of a crowd have now, most first, found anew after each start."""
        key = id(crowd), wanted, inside
        known = self._most.get(key)
        if known is None or known[0] != self.board.version:
            rooms = sorted((spot.most for spot in crowd if not spot.closed(wanted, inside)), reverse=True)
            known = self._most[key] = self.board.version, rooms
        return known[1]

    def _single(self, place: Place) -> Spot:
        node, uuid = place.node, place.device.uuid if place.device else None
        if (node.name, uuid) not in self._of_device:
            if node.name not in self.sides:
                self.sides[node.name] = Side(self.board, node)
            self._of_device[node.name, uuid] = Spot(self.board, place, self.sides[node.name])
        return self._of_device[node.name, uuid]

    def joined(self, r: Running) -> None:
        """Bring the figures up to date after a start."""
        side = self.sides.get(r.node)
        if side is None:
            return
        side.joined(r)
        side.ram.refresh(self.board.ledger(side.node.ram))
        for uuid in r.devices:
            spot = self._of_device.get((r.node, uuid))
            if spot is None or spot.place.device is None:
                continue
            spot.joined(r)
            if spot.device is not None:
                device = spot.place.device
                spot.device.refresh(self.board.ledger(device.pool, device.measurable))

    def open(self) -> tuple[tuple[str, str], ...]:
        """Return the devices, of those that were asked about, which neither people nor their health keep shut."""
        return tuple(sorted((node, uuid or "") for (node, uuid), spot in self._of_device.items() if not spot.shut))

    def fitting(self, waiting: Waiting) -> list[Fit]:
        """Return the places where the job has room now, whatever stands against the job itself."""
        kind = self.kind(waiting.request)
        ask = self.ask(waiting.estimate)
        vram, ram = ask[0][0], ask[1][0]
        if kind.bounded and ((ram or 0) > kind.ram or (kind.takes_device and (vram or 0) > kind.vram)):
            return []
        if ask in kind.refused or self._hopeless(kind):
            return []
        wanted, lowers, inside = kind.request.exclusive, kind.lowers, kind.request.inside
        found: list[Fit] = []
        evenly = Evenly(ask, wanted, lowers, inside) if kind.evenly else None
        for spot in self.places(waiting, kind, fitting=True):
            if evenly is not None and isinstance(spot, Several):
                if (needs := evenly.fits(spot)) is not None:
                    found.append((spot, needs, spot.takes_all(ask)))
                continue
            if not spot.closed(wanted, inside):
                if isinstance(spot, Several) or spot.unified:
                    needs = self._parts(waiting, spot, now=True)
                else:
                    needs = spot.fits(ask, lowers)
                if needs is not None:
                    found.append((spot, needs, spot.takes_all(ask)))
        if not found:
            kind.refused.add(ask)
            if kind.version != self.board.version:
                kind.tighten(self.board.version)
        return found

    def ever(self, waiting: Waiting) -> bool:
        """Return whether any place could serve the job when it is free."""
        kind, ask = self.kind(waiting.request), self.ask(waiting.estimate)
        return any(
            spot.ever(ask, kind.lowers)
            if isinstance(spot, Spot) and not spot.unified
            else self._parts(waiting, spot, now=False) is not None
            for spot in self.places(waiting, kind)
        )

    def _parts(self, waiting: Waiting, spot: Spot | Several, now: bool) -> Needs | None:
        """Return the needs of a place whose device has no memory of its own, or of several: asked part by part."""
        parts = self.board.parts(demand_of(waiting.request, waiting.estimate), spot.place)
        if any(part.at_most is not None and part.least > part.at_most for part in parts):
            return None
        if now and not all(has_room(part) for part in parts):
            return None
        return tuple((part.pool.pool, part.need or 0, part.margin) for part in parts)


_NO = Exclusive.NO


def _ask(estimate: Estimate) -> Ask:
    pools = estimate.pools
    found: list[Asked] = []
    for word in ("vram", "ram"):
        pool = pools.get(word)
        if pool is None:
            found.append(_UNKNOWN)
        elif pool.need is None:
            found.append((None, 0, pool.at_least or 0))
        else:
            found.append((pool.need, pool.margin or 0, 0))
    return found[0], found[1], pools["vram"].booked if "vram" in pools else None
