"""Who would have to end before a place has room for a waiting job: the fewest, of equal sets the soonest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from placement.domain.admission.company import kept_out_by
from placement.domain.admission.decision import Code
from placement.domain.admission.demands import waiting_demand
from placement.domain.admission.gate import Look, look
from placement.domain.admission.places import Board, Place, place_of
from placement.domain.planning.future import ends, frees
from placement.domain.unblocking.changes import Ends, after
from placement.domain.world.snapshot import Running, Snapshot, Waiting

TOGETHER = 3  # so many jobs at most are looked for that have to end together; else all of a place
LOOKS = 24  # sets that the gate is asked about at one place
_NEXT = 16  # running jobs, soonest first, of which such sets are made


def fewest(snapshot: Snapshot, board: Board, waiting: Waiting, one: Look) -> tuple[int, ...]:
    """Return the smallest set of jobs after whose end the place says yes, of equal ones the soonest; () for none."""
    place = one.place
    must = _in_the_way(board, one)
    pools = {part.pool.pool for part in one.parts}
    rest = [r for r in soonest(board, board.on_node(place.node.name)) if r.job not in must and pools & set(r.charges)]
    sets = [tuple(r.job for r in some) for size in range(TOGETHER + 1) for some in _sooner(rest, size)]
    gives = {part.pool.pool: frees(part.ledger) for part in one.parts}
    tried = 0
    for some in (*sets, tuple(r.job for r in rest)):
        jobs = (*must, *some)
        if not jobs or not _could(one, gives, frozenset(jobs)):
            continue
        tried += 1
        if _fits(snapshot, waiting, place, jobs):
            return jobs
        if tried >= LOOKS:
            break
    return ()


def _sooner(rest: Sequence[Running], size: int) -> Iterator[tuple[Running, ...]]:
    """Yield the sets of one size, those first that are over soonest; ``rest`` is soonest first."""
    order = {r.job: place for place, r in enumerate(rest)}
    yield from sorted(combinations(rest[:_NEXT], size), key=lambda some: max((order[r.job] for r in some), default=-1))


def _in_the_way(board: Board, one: Look) -> tuple[int, ...]:
    """Return the jobs whose very presence keeps it out: somebody is to be alone, or a first run settles."""
    codes = {check.code for check in one.candidate.objections}
    place = one.place
    found: list[Running] = []
    if Code.EXCLUSIVE_JOB in codes:
        found += board.alone_on(place.node.name) or board.on_node(place.node.name)
    if codes & {Code.EXCLUSIVE_DEVICE, Code.COLD_START}:
        found += kept_out_by(board, place, one.request)
    return tuple(dict.fromkeys(r.job for r in found))


def _could(one: Look, gives: Mapping[str, Mapping[int, int]], gone: frozenset[int]) -> bool:
    """Return whether these could give back enough at all: a sum, before the gate is asked."""
    for check in one.candidate.objections:
        part = next((p for p in one.parts if p.pool.pool == check.pool), None)
        if part is None or not check.shortfall:
            continue
        holders = [h for h in part.ledger.holders if h.job in gone]
        if check.code is Code.BOOKED and sum(h.charge.held for h in holders) < check.shortfall:
            return False
        if check.code is Code.NO_ROOM:
            given = sum(amount for job, amount in gives[part.pool.pool].items() if job in gone)
            cushion = part.ledger.back.cushion
            if given + sum(h.growth for h in holders) + cushion < check.shortfall:
                return False
    return True


def _fits(snapshot: Snapshot, waiting: Waiting, place: Place, jobs: tuple[int, ...]) -> bool:
    board = Board(after(snapshot, waiting.job, (Ends(jobs),)))
    node = board.nodes[place.node.name]
    devices = tuple(device for device in node.devices if device.uuid in place.uuids)
    there = place_of(node, devices, board.many) if devices else replace(place, node=node)
    return look(board, waiting_demand(waiting), there).ok


def soonest(board: Board, running: Sequence[Running]) -> list[Running]:
    """Return running jobs, those first that are expected to end first."""
    return sorted(running, key=lambda r: (ends(board, r.node)[r.job].bar, r.job))
