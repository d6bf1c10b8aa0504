"""The quick half of the gate: the verdict alone, from bare figures, without a sentence or an object per question.

It says exactly what ``gate.decide_on`` says (a property test holds the two together). Room only shrinks within a
cycle, so who fits nowhere once fits nowhere until it ends, and is not looked for again. Bytes throughout.
"""

from __future__ import annotations

from calibration.domain.estimate import Estimate
from placement.domain import checks
from placement.domain.demands import Part, demand_of
from placement.domain.first_runs import fair_ram, first_run_least, first_run_ram
from placement.domain.levels import Ask, Asked, Level
from placement.domain.places import Board, Place
from placement.domain.requests import Exclusive, Gpu, Request
from placement.domain.snapshot import Node, Running, Waiting

Needs = tuple[tuple[str, int, int], ...]  # pool, need, margin: the device's first
_UNKNOWN: Asked = (None, 0, 0)


class Side:
    """One node: its RAM, and how many jobs are there."""

    __slots__ = ("alone", "jobs", "node", "ram", "shut")

    def __init__(self, board: Board, node: Node) -> None:
        self.node = node
        self.ram = Level(board.ledger(node.ram), first_run_ram(node, board.knobs))
        self.jobs = self.alone = 0
        for r in board.on_node(node.name):
            self.joined(r)
        read = checks.reading_of(board, node.ram, None)
        self.shut = not (read.ok and checks.pressure_of(board, node).ok)

    def joined(self, r: Running) -> None:
        """Count one more job."""
        self.jobs += 1
        self.alone += r.exclusive is Exclusive.MACHINE


class Spot:
    """One place: its levels, who is there, and whether anything but memory keeps everybody out."""

    __slots__ = ("alone", "cold", "device", "fair", "here", "only", "part", "place", "shut", "side", "unified")

    def __init__(self, board: Board, place: Place, side: Side) -> None:
        self.place, self.side = place, side
        device = place.device
        self.only = device is not None and device.exclusive_only
        self.unified = device is not None and device.pool.pool == place.node.ram.pool
        self.device: Level | None = None
        self.shut = side.shut or not all(check.ok for check in checks.standing_of(board, place))
        if device is not None and not self.unified:
            ledger = board.ledger(device.pool, device.measurable)
            self.device = Level(ledger, first_run_least(device, board.knobs))
            self.shut = self.shut or not checks.reading_of(board, device.pool, device).ok
        self.fair = fair_ram(place.node, 0 if device is None else 1)
        self.part = board.knobs.cold_ram_share
        self.here = self.alone = self.cold = 0
        if device is not None:
            for r in board.on_place(place):
                self.joined(r)

    def joined(self, r: Running) -> None:
        """Count one more job on the device."""
        self.here += 1
        self.alone += r.exclusive is Exclusive.DEVICE
        self.cold += r.cold

    @property
    def members(self) -> tuple[Spot, ...]:
        """Return the places of one device that this one consists of."""
        return (self,)

    def closed(self, wanted: Exclusive) -> bool:
        """Return whether an operator, the node's health or somebody's presence keeps such a job out."""
        side = self.side
        if self.shut or side.alone or (side.jobs and wanted is Exclusive.MACHINE):
            return True
        if not self.here:  # jobs on its device; nobody is counted where there is none
            return False
        return bool(self.only or self.alone or self.cold or wanted is Exclusive.DEVICE)

    def fits(self, ask: Ask, alone: bool) -> Needs | None:
        """Return what the job would be charged in each pool, None where one has no room; not of unified memory."""
        (vram, vram_margin, vram_least), (ram, ram_margin, ram_least) = ask
        device, side = self.device, self.side
        found: Needs = ()
        if device is not None:
            need = device.give(vram, vram_margin, vram_least, alone)
            if need is None:
                return None
            found = ((device.pool, need, vram_margin),)
        if ram is None:
            need = side.ram.share(self.fair, self.part, ram_least)
        else:
            need = side.ram.give(ram, ram_margin, 0, False)
        return None if need is None else (*found, (side.ram.pool, need, ram_margin))

    def takes_all(self, ask: Ask) -> bool:
        """Return whether it would be a first run of what the place is taken for: its device, else its RAM."""
        if self.unified:
            return ask[0][0] is None or ask[1][0] is None
        return ask[1 if self.device is None else 0][0] is None

    def ever(self, ask: Ask, alone: bool) -> bool:
        """Return whether the place could serve if nothing else were there; not of unified memory."""
        (vram, vram_margin, vram_least), (ram, ram_margin, ram_least) = ask
        device = self.device
        if device is not None and not device.could(vram, vram_margin, vram_least, alone):
            return False
        least = max(self.side.ram.least, ram_least) if ram is None else ram
        return self.side.ram.holds(least, ram_margin)


Fit = tuple[Spot, Needs, bool]


class Kind:
    """Places that one request allows, with bounds above which a need is refused without a look at each."""

    __slots__ = ("bounded", "ram", "refused", "request", "spots", "takes_device", "version", "vram")

    def __init__(self, request: Request, spots: list[Spot], version: int) -> None:
        self.request, self.spots = request, spots
        self.takes_device = request.gpu is not Gpu.NONE
        self.refused: set[Ask] = set()
        self.tighten(version)

    def tighten(self, version: int) -> None:
        """Set the bounds to the most that an open place has now."""
        self.version = version
        wanted = self.request.exclusive
        there = [spot for spot in self.spots if not spot.closed(wanted)]
        self.ram = max((spot.side.ram.most_now for spot in there), default=-1)
        self.vram = max((spot.device.most_now for spot in there if spot.device is not None), default=-1)
        self.bounded = wanted is Exclusive.NO and not any(spot.unified for spot in there)


class Rooms:
    """The figures of all places on a board, kept up with what the cycle starts."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.sides: dict[str, Side] = {}
        self.spots: dict[tuple[str, int, str], Spot] = {}
        self._of_device: dict[tuple[str, str | None], Spot] = {}
        self._kinds: dict[Request, Kind] = {}
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
            spots = [self._spot(place) for place in self.board.places(request)]
            found = self._kinds[request] = Kind(request, spots, self.board.version)
        self._kind_by_id[id(request)] = request, found
        return found

    def ask(self, estimate: Estimate) -> Ask:
        """Return the figures of an estimate that a verdict depends on."""
        known = self._ask_by_id.get(id(estimate))
        if known is None:
            known = self._ask_by_id[id(estimate)] = estimate, _ask(estimate)
        return known[1]

    def _spot(self, place: Place) -> Spot:
        if place.order not in self.spots:
            node = place.node
            if node.name not in self.sides:
                self.sides[node.name] = Side(self.board, node)
            made = self.spots[place.order] = Spot(self.board, place, self.sides[node.name])
            self._of_device[node.name, place.device.uuid if place.device else None] = made
        return self.spots[place.order]

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

    def open(self) -> tuple[tuple[str, int, str], ...]:
        """Return the places, of those that were asked about, which neither people nor their health keep shut."""
        return tuple(sorted(order for order, spot in self.spots.items() if not spot.shut))

    def fitting(self, waiting: Waiting) -> list[Fit]:
        """Return the places where the job has room now, whatever stands against the job itself."""
        kind = self.kind(waiting.request)
        ask = self.ask(waiting.estimate)
        vram, ram = ask[0][0], ask[1][0]
        if kind.bounded and ((ram or 0) > kind.ram or (kind.takes_device and (vram or 0) > kind.vram)):
            return []
        if ask in kind.refused:
            return []
        wanted = kind.request.exclusive
        found = []
        for spot in kind.spots:
            if not spot.closed(wanted):
                needs = self._parts(waiting, spot, now=True) if spot.unified else spot.fits(ask, wanted is not _NO)
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
        alone = kind.request.exclusive is not _NO
        return any(
            self._parts(waiting, spot, now=False) is not None if spot.unified else spot.ever(ask, alone)
            for spot in kind.spots
        )

    def _parts(self, waiting: Waiting, spot: Spot, now: bool) -> Needs | None:
        """Return the needs of a place whose device has no memory of its own: asked part by part."""
        parts = self.board.parts(demand_of(waiting.request, waiting.estimate), spot.place)
        if any(part.at_most is not None and part.least > part.at_most for part in parts):
            return None
        if now and not all(_has_room(part) for part in parts):
            return None
        return tuple((part.pool.pool, part.need or 0, part.margin) for part in parts)


_NO = Exclusive.NO


def _has_room(part: Part) -> bool:
    left = part.ledger.left(part.margin)
    if part.need is None or left is None or part.need > left:
        return False
    return not part.all or (part.need >= part.least and not part.pool.draining)


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
    return found[0], found[1]
