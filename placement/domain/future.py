"""What a place will have left later: running jobs end as predicted, each counted with what it started on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from placement.domain import text
from placement.domain.decision import Check, Code
from placement.domain.durations import Remaining, Sure, remaining
from placement.domain.gate import Look
from placement.domain.places import Board, in_force
from placement.domain.reservations import Ledger, kept
from placement.domain.snapshot import Pool, Running

TOLERANCE = 1.0  # seconds: two clocks read a moment apart are not a change of plan
EndOf = Callable[[Running], float | None]

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
    memo = board.memo[node]
    if "ends" not in memo:
        memo["ends"] = {r.job: remaining(r.elapsed, r.limit, r.learned, board.knobs) for r in board.on_node(node)}
    found: Mapping[int, Remaining] = memo["ends"]
    return found


def frees(ledger: Ledger) -> Mapping[int, int]:
    """Return the bytes that each holder gives back when it ends.

    Where the driver hides a job's use, what nobody else explains is taken for it: a forecast, no measurement.
    """
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
    return found


def left_at(ledger: Ledger, gone: Callable[[int], bool], margin: int) -> int | None:
    """Return the smaller of both rooms once the jobs that are ``gone`` have ended; None where it is unknown.

    Those that stay count with the larger of their charge at the start and what they hold: room that
    settling gave back is not there for a plan.
    """
    stay = [h for h in ledger.holders if not gone(h.job)]
    charged = [max(h.charge.at_start, h.charge.held) for h in stay]
    booked = ledger.pool.declared - sum(charged)
    if not ledger.measurable:
        return booked
    if ledger.pool.free is None:
        return None
    back = frees(ledger)
    freed = sum(back[h.job] for h in ledger.holders if gone(h.job))
    growth = sum(max(0, c - (h.used or 0)) for c, h in zip(charged, stay, strict=True))
    held_back = kept(ledger.pool, (h.margin for h in stay), margin, ledger.knobs).kept
    return min(booked, _free_soon(ledger.pool) + freed - growth - held_back)


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
    for hold in (place.node.hold, None if place.device is None else place.device.hold):
        if hold is not None and in_force(hold, wall):
            if hold.until is None:
                return Earliest(None, why_none=text.hold(place.label, hold, wall))
            start = max(start, hold.until - wall)
    there = board.on_node(place.node.name)
    until = {r.job: end_of(r) for r in there}
    for job in _must_end(board, one):
        end = until[job]
        if end is None:
            return Earliest(None, why_none=f"#{job} is past twice its predicted time; nobody knows when it ends.")
        start = max(start, end)
    here = {h.job for part in one.parts for h in part.ledger.holders}
    later = sorted({end for job, end in until.items() if end is not None and job in here and end > start})
    for at in (start, *later):
        gone = frozenset(job for job, end in until.items() if end is not None and end <= at + TOLERANCE)
        if _fits(board, one, gone):
            waited = tuple(sorted((j for j in gone if j in here), key=lambda j: (until[j] or 0.0, j)))
            sures = [ends(board, place.node.name)[j].sure for j in waited]
            return Earliest(at, waited, min(sures, default=Sure.GUESS))
    return Earliest(None, why_none=_blocker(board, one, until), drains=_nobody_named(one, until))


def _must_end(board: Board, one: Look) -> list[int]:
    """Return the jobs whose very presence is in the way: somebody is to be alone, or a first run settles."""
    codes = {c.code for c in one.candidate.objections}
    found: list[int] = []
    if Code.EXCLUSIVE_JOB in codes:
        found += [r.job for r in board.on_node(one.place.node.name)]
    if Code.EXCLUSIVE_DEVICE in codes:
        found += [r.job for r in board.on_place(one.place)]
    if Code.COLD_START in codes:
        found += [r.job for r in board.on_place(one.place) if r.cold]
    return found


def _fits(board: Board, one: Look, gone: frozenset[int]) -> bool:
    for part in one.parts:
        left = left_at(part.ledger, gone.__contains__, part.margin)
        if left is None or left < (part.least if part.cold or part.need is None else part.need):
            return False
    ram = one.place.node.ram
    if one.place.node.ram_pressure and ram.used is not None and ram.total is not None:
        back = frees(board.ledger(ram))
        used = ram.used - sum(back[j] for j in gone if j in back)
        return used < board.knobs.ram_low * ram.total
    return True


def _nobody_named(one: Look, until: Mapping[int, float | None]) -> bool:
    """Return whether the missing memory may be on its way back, as nobody who could be named holds it."""
    if any(part.pool.draining for part in one.parts):
        return True
    held = [part for part in one.parts if any(until[h.job] is None for h in part.ledger.holders)]
    named = [part for part in one.parts if any(amount for *_, amount in part.pool.external_who)]
    return not held and not named and not one.place.node.ram_pressure


def _endless(ids: list[int]) -> str:
    return f"{text.jobs(ids)} ran past twice the predicted time; nobody knows when that ends."


def _blocker(board: Board, one: Look, until: Mapping[int, float | None]) -> str:
    """Return who is in the way without an end."""
    endless = [h.job for p in one.parts for h in p.ledger.holders if until[h.job] is None]
    if endless:
        return _endless(endless)
    for part in one.parts:
        who = text.outsiders(part.pool)
        if who:
            return f"{who} {text.on(part.pool, board.many)}: nobody knows when that ends."
    if one.place.node.ram_pressure:
        return f"RAM of {one.place.node.name} is short, and no job's end would change that."
    against: tuple[Check, ...] = one.candidate.objections
    told = against[0].sentence if against else f"{one.place.label} has too little room."
    return f"{told} No job's end would change that."
