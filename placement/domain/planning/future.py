"""What a place will have left later: running jobs end as predicted, each counted with what it started on."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from placement.domain.admission.company import kept_out_by
from placement.domain.admission.decision import Check, Code
from placement.domain.admission.demands import Part
from placement.domain.admission.gate import Look
from placement.domain.admission.places import Board, in_force
from placement.domain.world import text
from placement.domain.world.durations import Remaining, Sure, remaining
from placement.domain.world.pressure import marks_of
from placement.domain.world.reservations import Ledger, floor
from placement.domain.world.snapshot import Node, Pool, Running

TOLERANCE = 1.0  # seconds: two clocks read a moment apart are not a change of plan
EndOf = Callable[[Running], float]

ENDLESS = frozenset(
    {
        Code.INFEASIBLE,
        Code.DRAINING,
        Code.NODE_STALE,
        Code.NODE_NO_WORK,
        Code.DISK_LOW,
        Code.PROCESS_LIMIT,
        Code.NO_READING,
        Code.STALE_READING,
        Code.DEVICE_LOST,
    }
)
"""Objections that no job's end removes."""


@dataclass(frozen=True, slots=True)
class Earliest:
    """When a place has room: seconds from now, None with the reason when nobody can tell."""

    in_s: float | None
    waits_for: tuple[int, ...] = ()
    sure: Sure = Sure.LIMIT
    why_none: str = ""
    drains: bool = False  # too little room, and nobody who could be named holds it: it may be on its way back


def ends(board: Board, node: str) -> Mapping[int, Remaining]:
    """Return how long each job of the node still runs."""
    found: dict[int, Remaining] = board.fixed[node].setdefault("ends", {})
    there = board.on_node(node)
    if len(found) < len(there):  # those of the snapshot, then each that has started since
        for r in there[len(found) :]:
            found[r.job] = remaining(r.elapsed, r.limit, r.learned, board.knobs, r.seen)
    return found


def frees(ledger: Ledger) -> Mapping[int, int]:
    """Return the bytes that each holder gives back when it ends.

    Where the driver hides a job's use, what nobody else explains is taken for it: a forecast, no measurement.
    """
    kept: Mapping[int, int] | None = ledger.answers.get("frees")
    if kept is not None:
        return kept
    known = sum(h.used for h in ledger.holders if h.used is not None)
    rest = max(0, (ledger.pool.used or 0) - known - (ledger.pool.external or 0))
    found = {}
    for h in ledger.holders:
        if h.used is None:
            part = min(h.charge.held, rest)
            rest -= part
            found[h.job] = part
        else:
            found[h.job] = h.used
    ledger.answers["frees"] = found
    return found


@dataclass(frozen=True, slots=True)
class Then:
    """One pool at some second: both rooms, but for what is kept. ``free`` None is unknown."""

    booked: int
    free: int | None
    floor: int
    margin: int  # the largest of those that are still there
    measurable: bool

    def left(self, margin: int) -> int | None:
        """Return the smaller of both rooms for somebody with this margin."""
        if not self.measurable:
            return self.booked
        if self.free is None:
            return None
        return min(self.booked, self.free - max(self.floor, self.margin, margin))


class Line:
    """One pool played forward: what it has after each end. ``until`` is seconds from now by job.

    Those that stay count with the larger of their charge at the start and what they hold: room that settling gave
    back is not there for a plan.
    """

    def __init__(self, ledger: Ledger, until: Mapping[int, float]) -> None:
        back = frees(ledger)
        self.ledger = ledger
        booked, free = ledger.pool.declared, _free_soon(ledger.pool)
        ending: list[tuple[float, int, int, int, int]] = []
        for h in ledger.holders:
            charge = h.charge
            held = charge.held if charge.held > charge.at_start else charge.at_start
            growth = max(0, held - (charge.used or 0))
            booked -= held
            free -= growth
            ending.append((until[h.job], h.job, held, growth, h.margin))
        ending.sort()
        margins = [0]
        for *_, margin in reversed(ending):
            margins.append(max(margins[-1], margin))
        freed = 0
        self.seconds = [end for end, *_ in ending]
        self.steps = [(booked, free, margins.pop(), 0)]
        for _, job, held, growth, _ in ending:
            booked += held
            free += back[job] + growth
            freed += back[job]
            self.steps.append((booked, free, margins.pop(), freed))
        self._floor = floor(ledger.pool, ledger.knobs)

    def ended(self, at: float) -> int:
        """Return how many have ended by this second."""
        return bisect_right(self.seconds, at + TOLERANCE)

    def then(self, at: float) -> Then:
        """Return the pool as it will be at this second."""
        booked, free, margin, _ = self.steps[self.ended(at)]
        known = None if self.ledger.pool.free is None else free
        return Then(booked, known, self._floor, margin, self.ledger.measurable)

    def last(self) -> Then:
        """Return the pool after the last end."""
        return self.then(math.inf)

    def freed(self, at: float) -> int:
        """Return the measured bytes that have come back by this second."""
        return self.steps[self.ended(at)][3]


def line(board: Board, ledger: Ledger) -> Line:
    """Return the pool played forward by the ends that are expected, made once until the pool changes."""
    fixed, key = board.fixed[ledger.pool.node], ("line", ledger.pool.pool)
    found: Line | None = fixed.get(key)
    if found is None or found.ledger is not ledger:
        until = {job: end.bar for job, end in ends(board, ledger.pool.node).items()}
        found = fixed[key] = Line(ledger, until)
    return found


def _free_soon(pool: Pool) -> int:
    """Return free memory with what an ended job has not given back yet: neither used nor the driver's."""
    free = pool.free or 0
    if pool.total is None or pool.used is None:
        return free
    return max(free, pool.total - pool.used - (pool.reserved or 0))


def earliest(board: Board, one: Look, end_of: EndOf) -> Earliest:
    """Return when the place could take the job if others end as ``end_of`` says (seconds, None: never)."""
    place, wall = one.place, board.snapshot.wall
    start = 0.0
    for check in one.candidate.objections:
        if check.code in ENDLESS:
            return Earliest(None, why_none=check.sentence)
    for hold in (place.node.hold, *(device.hold for device in place.devices)):
        if hold is not None and in_force(hold, wall):
            if hold.until is None:
                return Earliest(None, why_none=text.hold(place.label, hold, wall))
            start = max(start, hold.until - wall)
    there = board.on_node(place.node.name)
    until = {r.job: end_of(r) for r in there}
    for job in _must_end(board, one):
        start = max(start, until[job])
    lines = [(Line(part.ledger, until), part) for part in one.parts]
    short = pressure(board, place.node, until)
    at = first_room(start, [(own, wanted(part), part.margin) for own, part in lines], short)
    if at is None:
        return Earliest(None, why_none=_blocker(board, one), drains=_nobody_named(one))
    here = {h.job for part in one.parts for h in part.ledger.holders}
    gone = [(until[job], job) for job in here if until[job] <= at + TOLERANCE]
    waited = tuple(job for _, job in sorted(gone))
    sures = [ends(board, place.node.name)[j].sure for j in waited]
    return Earliest(at, waited, min(sures, default=Sure.GUESS))


def wanted(part: Part) -> int:
    """Return what has to be there: a first run takes what there is, from its least on."""
    return part.least if part.cold or part.need is None else part.need


def pressure(board: Board, node: Node, until: Mapping[int, float] | None = None) -> tuple[Line, int] | None:
    """Return the RAM of a node that is short of it, and how much has to come back; None where enough is free."""
    ram = node.ram
    if not node.ram_pressure or ram.used is None or not ram.total:
        return None
    ledger = board.ledger(ram)
    own = line(board, ledger) if until is None else Line(ledger, until)
    return own, math.floor(ram.used - marks_of(node.ram_marks, board.knobs)[1] * ram.total) + 1


def first_room(
    start: float, wants: Sequence[tuple[Line, int, int]], pressure: tuple[Line, int] | None = None
) -> float | None:
    """Return the first second from ``start`` on at which each pool has that much for that margin, None: never.

    Room only grows as jobs end, so the seconds are searched by halves.
    """

    def enough(at: float) -> bool:
        if pressure is not None and pressure[0].freed(at) < pressure[1]:
            return False
        rooms = ((own.then(at).left(margin), need) for own, need, margin in wants)
        return all(left is not None and need <= left for left, need in rooms)

    if enough(start):
        return start
    later = sorted({second for own, _, _ in wants for second in own.seconds if second > start})
    if not later or not enough(later[-1]):
        return None
    return later[bisect_left(later, True, key=enough)]


def _must_end(board: Board, one: Look) -> list[int]:
    """Return the jobs whose very presence is in the way: somebody is to be alone, or a first run settles."""
    codes = {c.code for c in one.candidate.objections}
    found: list[int] = []
    if Code.EXCLUSIVE_JOB in codes:
        found += [r.job for r in board.on_node(one.place.node.name)]
    if codes & {Code.EXCLUSIVE_DEVICE, Code.COLD_START}:
        found += [r.job for r in kept_out_by(board, one.place, one.request)]
    return found


def _nobody_named(one: Look) -> bool:
    """Return whether the missing memory may be on its way back, as nobody who could be named holds it."""
    if any(part.pool.draining for part in one.parts):
        return True
    named = [part for part in one.parts if any(amount for *_, amount in part.pool.external_who)]
    return not named and not one.place.node.ram_pressure


def _blocker(board: Board, one: Look) -> str:
    """Return who is in the way without an end."""
    for part in one.parts:
        who = text.outsiders(part.pool)
        if who:
            return f"{who} {text.on(part.pool, board.many)}: nobody knows when that ends."
    if one.place.node.ram_pressure:
        return f"RAM of {one.place.node.name} is short, and no job's end would change that."
    against: tuple[Check, ...] = one.candidate.objections
    told = against[0].sentence if against else f"{one.place.label} has too little room."
    return f"{told} No job's end would change that."
