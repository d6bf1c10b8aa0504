"""When each waiting job is expected to start: the queue played forward once, in order, in linear work.

A forecast, not a promise: on each device jobs are taken to start in queue order, and RAM of a job that
starts later is counted from now.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field

from placement.domain import checks
from placement.domain.decision import Candidate, PlannedStart
from placement.domain.durations import Sure, expected
from placement.domain.future import ends, frees
from placement.domain.places import Board, Demand, Part, Place
from placement.domain.requests import Exclusive
from placement.domain.reservations import Ledger
from placement.domain.snapshot import Waiting

Release = tuple[float, int, int, int, int]  # second, job, bytes measured, bytes booked, Sure


@dataclass(slots=True)
class Track:
    """One pool played forward: room now, and what comes back when. ``free`` None: the booked ledger alone."""

    free: int | None
    booked: int
    releases: list[Release]
    clock: float = 0.0
    sure: int = int(Sure.LIMIT)
    endless: tuple[int, ...] = ()
    ended: list[int] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Return the smaller of both rooms at the clock."""
        return self.booked if self.free is None else min(self.free, self.booked)

    def advance(self, at: float) -> None:
        """Let everything end that ends by this second."""
        count = 0
        for second, job, free, booked, sure in self.releases:
            if second > at:
                break
            count += 1
            self.booked += booked
            self.free = None if self.free is None else self.free + free
            self.sure = min(self.sure, sure)
            self.ended = [*self.ended[-3:], job]
        if count:
            del self.releases[:count]
        self.clock = max(self.clock, at)

    def fits_from(self, need: int, at: float) -> float | None:
        """Return the first second from ``at`` on with this much room, None where none ever comes."""
        free, booked = self.free, self.booked
        at = max(at, self.clock)
        left = booked if free is None or booked < free else free
        if left >= need:
            return at
        for second, _, more_free, more_booked, _ in self.releases:
            booked += more_booked
            free = None if free is None else free + more_free
            left = booked if free is None or booked < free else free
            if left >= need:
                return second if second > at else at
        return None

    def empty_from(self) -> float | None:
        """Return the second from which nobody is there, None where somebody has no end."""
        if self.endless:
            return None
        return max(self.clock, self.releases[-1][0]) if self.releases else self.clock

    def charge(self, job: int, need: int, until: float, sure: int) -> None:
        """Take this much until that second."""
        self.booked -= need
        self.free = None if self.free is None else self.free - need
        insort(self.releases, (until, job, need, need, sure))


@dataclass(frozen=True, slots=True)
class Want:
    """What one pool has to have. ``leads``: the pool whose jobs are taken to start in queue order."""

    track: Track
    need: int
    alone: bool
    takes_all: bool
    leads: bool


@dataclass(frozen=True, slots=True)
class Option:
    """One place for one demand."""

    place: Place
    wants: tuple[Want, ...]

    def earliest(self) -> float | None:
        """Return the first second at which every pool has what it has to have, None where none comes."""
        at = 0.0
        for want in self.wants:
            first = want.track.empty_from() if want.alone else at
            room = None if first is None else want.track.fits_from(want.need, max(at, first))
            if room is None:
                return None
            at = room
        return at


class Forecast:
    """The tracks of all pools, charged with each waiting job in its turn."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._tracks: dict[tuple[str, str], Track] = {}
        self._open: dict[tuple[str, int, str], str] = {}
        self._options: dict[Demand, tuple[Option, ...]] = {}

    def _track(self, ledger: Ledger) -> Track:
        pool = ledger.pool
        key = (pool.node, pool.pool)
        if key not in self._tracks:
            until, back = ends(self._board, pool.node), frees(ledger)
            releases: list[Release] = []
            endless = []
            for h in ledger.holders:
                end = until[h.job]
                if end.forecast is None:
                    endless.append(h.job)
                else:
                    gives = back[h.job] + h.growth
                    insort(releases, (end.forecast, h.job, gives, h.charge.held, int(end.sure)))
            free = ledger.measured(0) if ledger.measurable else None
            self._tracks[key] = Track(free, ledger.booked, releases, endless=tuple(endless))
        return self._tracks[key]

    def expect(self, waiting: Waiting, demand: Demand, candidates: tuple[Candidate, ...]) -> PlannedStart:
        """Return the predicted start, and charge it for those that come after."""
        if demand not in self._options:
            self._options[demand] = self._find(demand)
        best: Option | None = None
        best_at = 0.0
        for option in self._options[demand]:
            if best is not None and option.wants[0].track.clock >= best_at:
                continue
            at = option.earliest()
            if at is not None and (best is None or at < best_at):
                best, best_at = option, at
        if best is None:
            return self._never(candidates)
        return self._take(waiting, best_at, best)

    def _find(self, demand: Demand) -> tuple[Option, ...]:
        found = []
        for place in self._board.places(demand.request):
            parts = self._board.parts(demand, place)
            needs = [p.least if p.cold or p.need is None else p.need for p in parts]
            able = all(p.at_most is None or n <= p.at_most for p, n in zip(parts, needs, strict=True))
            if able and self._is_open(place):
                wants = (self._want(demand, place, p, n) for p, n in zip(parts, needs, strict=True))
                found.append(Option(place, tuple(wants)))
        return tuple(found)

    def _want(self, demand: Demand, place: Place, part: Part, need: int) -> Want:
        exclusive, on_device = demand.request.exclusive, part.pool.kind != "ram"
        only = place.device is not None and place.device.exclusive_only
        takes_device = on_device and (exclusive is Exclusive.DEVICE or only)
        return Want(
            track=self._track(part.ledger),
            need=need if part.need is None or part.cold else part.need,
            alone=exclusive is Exclusive.MACHINE or takes_device,
            takes_all=on_device and (part.cold or takes_device or exclusive is Exclusive.MACHINE),
            leads=on_device or place.device is None,
        )

    def _is_open(self, place: Place) -> bool:
        """Return whether nothing but jobs is in the way there."""
        key = place.order
        if key not in self._open:
            self._open[key] = self._shut(place)
        return not self._open[key]

    def _shut(self, place: Place) -> str:
        found = [*checks.standing(self._board, place), checks.reading(self._board, place.node.ram, None)]
        if place.device is not None:
            found.append(checks.reading(self._board, place.device.pool, place.device))
        held = [c for c in found if not c.ok]
        return held[0].sentence if held else ""

    def _take(self, waiting: Waiting, at: float, option: Option) -> PlannedStart:
        lasts, own = expected(waiting.limit, waiting.learned, self._board.knobs)
        waits: list[int] = []
        sure, place = int(Sure.LIMIT), option.place
        for want in option.wants:
            track = want.track
            if want.leads:
                track.advance(at)
                sure, waits = min(sure, track.sure), track.ended
            need = max(want.need, track.left) if want.takes_all else want.need
            track.charge(waiting.job, need, at + lasts, min(sure, int(own)))
        if place.device is not None:
            self._settle_ram(place)
        word = Sure(sure).word if waits else Sure.GUESS.word
        second = self._board.snapshot.at + at
        return PlannedStart(place.node.name, place.uuid, second, at, word, tuple(waits))

    def _settle_ram(self, place: Place) -> None:
        """Let RAM come back up to the earliest clock of the node's devices, so that its list stays short."""
        devices = [self._tracks.get((place.node.name, d.pool.pool)) for d in place.node.devices]
        clock = min((t.clock if t is not None else 0.0) for t in devices)
        ram = self._tracks.get((place.node.name, place.node.ram.pool))
        if ram is not None and clock > ram.clock:
            ram.advance(clock)

    def _never(self, candidates: tuple[Candidate, ...]) -> PlannedStart:
        told = [c.sentence for one in candidates[:1] for c in one.objections]
        why = told[0] if told else "Nothing that could serve it is declared."
        first = candidates[0] if candidates else None
        node, device = (first.node, first.device) if first else ("", None)
        return PlannedStart(node, device, None, None, why_none=why)
