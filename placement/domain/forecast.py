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


class Forecast:
    """The tracks of all pools, charged with each waiting job in its turn."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._tracks: dict[tuple[str, str], Track] = {}
        self._open: dict[tuple[str, int], str] = {}

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
        best: tuple[float, Place, tuple[Part, ...]] | None = None
        for place in self._board.places(demand.request):
            if not self._is_open(place):
                continue
            parts = self._board.parts(demand, place)
            at = self._at(demand, place, parts)
            if at is not None and (best is None or at < best[0]):
                best = (at, place, parts)
        if best is None:
            return self._never(candidates)
        at, place, parts = best
        return self._take(waiting, demand, at, place, parts)

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

    def _at(self, demand: Demand, place: Place, parts: tuple[Part, ...]) -> float | None:
        at, exclusive = 0.0, demand.request.exclusive
        for part in parts:
            need = part.least if part.cold or part.need is None else part.need
            if part.at_most is not None and need > part.at_most:
                return None
            track = self._track(part.ledger)
            alone = exclusive is Exclusive.MACHINE or (
                part.pool.kind != "ram" and (exclusive is Exclusive.DEVICE or self._only(place))
            )
            first = track.empty_from() if alone else track.fits_from(need, at)
            if first is None:
                return None
            at = max(at, first)
            again = track.fits_from(need, at)
            if again is None:
                return None
            at = max(at, again)
        return at

    @staticmethod
    def _only(place: Place) -> bool:
        return place.device is not None and place.device.exclusive_only

    def _take(self, waiting: Waiting, demand: Demand, at: float, place: Place, parts: tuple[Part, ...]) -> PlannedStart:
        lasts, own = expected(waiting.limit, waiting.learned, self._board.knobs)
        waits: list[int] = []
        sure = int(Sure.LIMIT)
        alone = demand.request.exclusive is not Exclusive.NO or self._only(place)
        for part in parts:
            track = self._track(part.ledger)
            if part.pool.kind != "ram" or place.device is None:
                track.advance(at)
                sure = min(sure, track.sure)
                waits = track.ended
            need = part.least if part.need is None else part.need
            if part.pool.kind != "ram" and (part.cold or alone):
                need = max(need, track.left)
            track.charge(waiting.job, need, at + lasts, min(sure, int(own)))
        if place.device is not None:
            self._settle_ram(place)
        return PlannedStart(
            place.node.name,
            place.uuid,
            self._board.snapshot.at + at,
            at,
            Sure(sure).word if waits else Sure.GUESS.word,
            tuple(waits),
        )

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
