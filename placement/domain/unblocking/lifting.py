"""What stands against a waiting job itself, whatever room there is, as the steps that would take it away."""

from __future__ import annotations

from collections.abc import Sequence

from placement.domain.admission.decision import Code
from placement.domain.admission.places import Board, in_force
from placement.domain.admission.prerequisites import Holdings, asked
from placement.domain.planning.future import ends
from placement.domain.unblocking.changes import Change, Comes, Ends, Met, Released, after, mine
from placement.domain.unblocking.fewest import soonest
from placement.domain.world.conditions import never_met
from placement.domain.world.snapshot import Snapshot


def lifted(snapshot: Snapshot, job: int) -> tuple[Change, ...] | None:
    """Return the steps that take away what stands against the job itself, None where nothing could."""
    waiting, wall = mine(snapshot, job), snapshot.wall
    if waiting.no_account:
        return None
    steps: list[Change] = []
    if (hold := snapshot.queue_hold) is not None and in_force(hold, wall):
        steps.append(Released("queue", hold.who, hold.until))
    if (hold := waiting.hold) is not None and in_force(hold, wall):
        steps.append(Released("job", hold.who, hold.until))
    by = waiting.conditions
    if by is None:
        return tuple(steps)
    if by.not_before is not None and wall < by.not_before:
        steps.append(Comes(by.not_before))
    if open_ := tuple(tie for tie in by.after if not tie.met):
        if never_met(job, by.after):
            return None
        steps.append(Met(open_))
    turns = _turns(after(snapshot, job, tuple(steps)), job)
    if turns is None:
        return None
    return (*steps, *turns)


def comes(snapshot: Snapshot, steps: Sequence[Change]) -> float | None:
    """Return the seconds until all of these steps are expected without anybody's doing, None where nobody can tell."""
    board, seconds = Board(snapshot), 0.0
    there = {r.job: r for r in snapshot.running}
    for step in steps:
        if isinstance(step, Ends | Met):
            jobs = step.jobs if isinstance(step, Ends) else tuple(tie.on for tie in step.ties)
            if not all(job in there for job in jobs):
                return None
            seconds = max([seconds, *(ends(board, there[job].node)[job].bar for job in jobs)])
        elif isinstance(step, Comes):
            seconds = max(seconds, step.at - snapshot.wall)
        elif isinstance(step, Released) and step.until is not None:
            seconds = max(seconds, step.until - snapshot.wall)
        else:
            return None
    return seconds


def _turns(snapshot: Snapshot, job: int) -> tuple[Change, ...] | None:
    """Return who of its array or its person has to end for its turn or its quota; None where nobody's end does."""
    board, waiting = Board(snapshot), mine(snapshot, job)
    by, gone = waiting.conditions, snapshot
    steps: list[Change] = []
    if by is not None and by.array and by.array_limit is not None:
        running = [r for r in snapshot.running if r.array == by.array]
        if (many := len(running) - by.array_limit + 1) > 0:
            if by.array_limit < 1:
                return None
            steps.append(Ends(tuple(r.job for r in soonest(board, running)[:many])))
            gone = after(gone, job, tuple(steps))
    if by is None or by.quota is None or not _over_quota(gone, job):
        return tuple(steps)
    ending: list[int] = []
    for r in soonest(Board(gone), [r for r in gone.running if r.user == waiting.user]):
        ending.append(r.job)
        if not _over_quota(after(gone, job, (Ends(tuple(ending)),)), job):
            return (*steps, Ends(tuple(ending)))
    return None


def _over_quota(snapshot: Snapshot, job: int) -> bool:
    found = asked(mine(snapshot, job), Holdings(snapshot.running), snapshot.wall)
    return any(check.code is Code.QUOTA and not check.ok for check in found)
