"""What would start a waiting job: who would have to end, what could be asked for instead, whose word is missing.

Each remedy holds: a cycle on the snapshot after its steps starts the job. Bytes and seconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from placement.domain.admission.decision import Code
from placement.domain.admission.demands import waiting_demand
from placement.domain.admission.gate import look
from placement.domain.admission.many_devices import all_places
from placement.domain.admission.places import Board, in_force, name_of
from placement.domain.planning.bars import to_plan
from placement.domain.planning.future import ENDLESS, ends
from placement.domain.planning.plan import Cycle, ordered
from placement.domain.unblocking.changes import Change, Edited, Ends, Opened, Released, after, mine
from placement.domain.unblocking.edits import Declaring, ForWorkers, OnDevices, found_by
from placement.domain.unblocking.fewest import fewest
from placement.domain.unblocking.lifting import comes, lifted
from placement.domain.world.durations import Sure
from placement.domain.world.requests import Gpu
from placement.domain.world.snapshot import Snapshot, Waiting

SETS = 6  # of the sets of devices that a group could take, the nearest to a start
PLACES = 3  # ends are told of so many places


@dataclass(frozen=True, slots=True)
class Remedy:
    """Steps after which the job starts, and what it then stands on.

    ``in_s`` seconds until it comes by itself, None where somebody has to do it or nobody can tell; ``gives`` the bytes
    that those who would end hold there; ``need`` what the job would be charged there, of its device if it has one.
    """

    steps: tuple[Change, ...]
    node: str
    device: str | None
    place: str
    need: int
    gives: int = 0
    in_s: float | None = None
    sure: Sure = Sure.GUESS

    @property
    def ends(self) -> tuple[int, ...]:
        """Return the running jobs that would have to end."""
        return tuple(job for step in self.steps if isinstance(step, Ends) for job in step.jobs)

    @property
    def edit(self) -> Edited | None:
        """Return what would have to be asked for instead, None where nothing."""
        return next((step for step in self.steps if isinstance(step, Edited)), None)


def remedies(
    snapshot: Snapshot,
    job: int,
    for_workers: ForWorkers | None = None,
    declaring: Declaring | None = None,
    on_devices: OnDevices | None = None,
) -> tuple[Remedy, ...]:
    """Return what would start the job, what comes by itself first; () where nothing of this kind would.

    One remedy without steps: the next cycle starts it.

    ``for_workers`` gives the estimate at a worker count, ``declaring`` the one with so many bytes declared of a kind,
    ``on_devices`` that of a group of at least so many devices.
    """
    first = lifted(snapshot, job)
    if first is None:
        return ()
    cleared = after(snapshot, job, first)
    came = comes(snapshot, first)
    start = starts(cleared, job)
    if start is not None:
        return (_remedy(first, start, came),)
    found = [
        *_by_ends(cleared, job, first, came),
        *_by_requests(cleared, job, first, came),
        *_by_edit(cleared, job, first, for_workers, declaring, on_devices),
        *_by_hand(cleared, job, first),
    ]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Start:
    """Where a cycle would start the job."""

    node: str
    device: str | None
    place: str
    need: int


def starts(snapshot: Snapshot, job: int) -> Start | None:
    """Return where the next cycle starts the job, everybody before it served; None where it does not."""
    cycle = _at_its_turn(snapshot, job)
    waiting = mine(snapshot, job)
    return _start(cycle, waiting) if cycle.may_start(waiting) else None


def _start(cycle: Cycle, waiting: Waiting) -> Start | None:
    decision = cycle.ask(waiting)
    grant = decision.grant
    if grant is None:
        return None
    lead = grant.device if grant.device in grant.charges else "ram"
    return Start(grant.node, grant.device, decision.candidates[0].label, grant.charges.get(lead or "ram", 0))


def _at_its_turn(snapshot: Snapshot, job: int) -> Cycle:
    cycle = Cycle(snapshot)
    for waiting in ordered(snapshot):
        if waiting.job == job:
            break
        cycle.consider(waiting)
    return cycle


def _remedy(steps: tuple[Change, ...], start: Start, in_s: float | None, sure: Sure = Sure.GUESS) -> Remedy:
    return Remedy(steps, start.node, start.device, start.place, start.need, 0, in_s, sure)


def _by_requests(snapshot: Snapshot, job: int, first: tuple[Change, ...], came: float | None) -> Iterator[Remedy]:
    """Yield the end of a running job whose request holds this one, for what it is known to ask for later."""
    if not mine(snapshot, job).later:
        return
    board = Board(snapshot)
    asking = dict.fromkeys(one.job for one in snapshot.asked if one.job is not None)
    for running in list(asking)[:PLACES]:
        step = Ends((running,))
        start = starts(after(snapshot, job, (step,)), job)
        node = next((r.node for r in snapshot.running if r.job == running and not r.more), None)
        if start is not None and node is not None:
            until = ends(board, node)[running]
            last = None if came is None else max(until.bar, came)
            yield _remedy((*first, step), start, last, until.sure)
            return


def _by_ends(snapshot: Snapshot, job: int, first: tuple[Change, ...], came: float | None) -> list[Remedy]:
    """Return for each place the fewest jobs whose end makes room there, the soonest place first."""
    board, waiting = Board(snapshot), mine(snapshot, job)
    demand, found, seen = waiting_demand(waiting), [], set()
    looks = [look(board, demand, place) for place in to_plan(waiting.request, all_places(board, demand))]
    if waiting.request.gpu is Gpu.GROUP:
        looks = sorted(looks, key=lambda one: one.near)[:SETS]
    for one in looks:
        place = one.place
        codes = {check.code for check in one.candidate.objections}
        if one.ok or codes & (ENDLESS | {Code.HELD}):
            continue
        jobs = fewest(snapshot, board, waiting, one)
        if not jobs or jobs in seen:
            continue
        seen.add(jobs)
        steps = (*first, Ends(jobs))
        start = starts(after(snapshot, job, (Ends(jobs),)), job)
        if start is None:  # somebody older takes what comes back
            continue
        until = ends(board, place.node.name)
        last = max(until[other].bar for other in jobs)
        given = sum(h.charge.held for h in one.parts[0].ledger.holders if h.job in jobs)
        found.append(
            Remedy(
                steps,
                start.node,
                start.device,
                start.place,
                start.need,
                given,
                None if came is None else max(last, came),
                min(until[other].sure for other in jobs),
            )
        )
    told = sorted(found, key=lambda r: (r.in_s is None, r.in_s or 0.0, len(r.ends), r.place))
    return [r for r in told if not any(set(o.ends) < set(r.ends) for o in told)][:PLACES]


def _by_edit(
    snapshot: Snapshot,
    job: int,
    first: tuple[Change, ...],
    for_workers: ForWorkers | None,
    declaring: Declaring | None,
    on_devices: OnDevices | None,
) -> Iterator[Remedy]:
    """Yield what the job could ask for instead so that it starts at once."""
    cycle, waiting = _at_its_turn(snapshot, job), mine(snapshot, job)

    def tried(edit: Edited) -> Remedy | None:
        made = edit.made(waiting)
        start = _start(cycle, made) if cycle.may_start(made) else None
        return None if start is None else _remedy((*first, edit), start, None)

    yield from found_by(cycle, waiting, tried, for_workers, declaring, on_devices)


def _by_hand(snapshot: Snapshot, job: int, first: tuple[Change, ...]) -> Iterator[Remedy]:
    """Yield the places that would serve if a person let them: released, or taken out of a drain."""
    board, waiting, wall = Board(snapshot), mine(snapshot, job), snapshot.wall
    done: set[Change] = set()
    for place in all_places(board, waiting_demand(waiting)):
        steps: list[Change] = []
        node = place.node
        for device in place.devices:
            hold, name = device.hold, name_of(device, board.many)
            if hold is not None and in_force(hold, wall):
                steps.append(Released("device", hold.who, hold.until, node.name, device.uuid, name))
        if in_force(node.hold, wall) and node.hold is not None:
            steps.append(Released("node", node.hold.who, node.hold.until, node.name, None, node.name))
        for device in place.devices:
            if device.draining:
                steps.append(Opened(node.name, device.uuid, name_of(device, board.many)))
        if node.state == "draining":
            steps.append(Opened(node.name, None, node.name))
        if len(steps) != 1 or steps[0] in done:
            continue
        done.add(steps[0])
        start = starts(after(snapshot, job, tuple(steps)), job)
        if start is not None:
            yield _remedy((*first, *steps), start, comes(snapshot, (*first, *steps)))
