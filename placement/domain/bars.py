"""The plan of the first job that fits nowhere, and whether a younger start would delay it (EASY backfill)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placement.domain import text
from placement.domain.decision import Check, Code, PlannedStart
from placement.domain.future import TOLERANCE, Earliest, earliest, ends, left_at
from placement.domain.gate import Aside, Look
from placement.domain.places import Board, Part, Place
from placement.domain.requests import Exclusive
from placement.domain.snapshot import Running, Waiting


@dataclass(frozen=True, slots=True)
class Bar:
    """A place and the absolute second from which it is set aside for a job."""

    job: int
    look: Look
    at: float
    exclusive: Exclusive
    shown: Earliest  # the forecast, overdue jobs counted as late

    def planned(self, now: float) -> PlannedStart:
        """Return it as a planned start: ``at`` is the second to keep, ``in_s`` the forecast shown."""
        in_s = max(0.0, self.at - now, self.shown.in_s or 0.0)
        place = self.look.place
        return PlannedStart(
            place.node.name,
            place.uuid,
            self.at,
            in_s,
            self.shown.sure.word,
            self.shown.waits_for,
            keeps=True,
        )


def rank(waiting: Waiting, ageing_hours: float) -> tuple[int, int, int]:
    """Return the sort key of the queue: priority, raised by waiting, then arrival."""
    return -effective(waiting, ageing_hours), waiting.arrival, waiting.job


def effective(waiting: Waiting, ageing_hours: float) -> int:
    """Return the priority with what waiting has added to it."""
    return waiting.priority + int(max(0.0, waiting.waited) / (ageing_hours * 3600))


def bar_for(board: Board, waiting: Waiting, looks: Sequence[Look]) -> Bar | str:
    """Return the job's plan, or the sentence that says why there is none.

    A kept plan moves only earlier, or later for a cause that is not a younger start.
    """
    now = board.snapshot.at
    found: list[tuple[float, Look]] = []
    why = ""
    for one in looks:
        first = earliest(board, one, lambda r: ends(board, r.node)[r.job].bar)
        if first.in_s is not None:
            found.append((first.in_s, one))
            continue
        why = why or first.why_none
        if first.drains and _still_due(board, waiting, one):
            found.append((max(0.0, waiting.plan.at - now if waiting.plan else 0.0), one))
    fresh = min(found, key=lambda f: (f[0], f[1].place.order), default=None)
    if fresh is None:
        return why or "Nothing that could serve it is declared."
    at, one = now + fresh[0], fresh[1]
    kept = waiting.plan
    mine = next((f for f in found if kept and _is(f[1].place, kept.node, kept.device)), None)
    if kept is not None and mine is not None:
        bound = _bound(board, waiting, mine[1], kept.at)
        if at >= bound - TOLERANCE:
            at, one = bound, mine[1]
    shown = earliest(board, one, lambda r: ends(board, r.node)[r.job].forecast)
    return Bar(waiting.job, one, at, waiting.request.exclusive, shown)


def _is(place: Place, node: str, device: str | None) -> bool:
    return (place.node.name, place.uuid) == (node, device)


def _still_due(board: Board, waiting: Waiting, one: Look) -> bool:
    """Return whether a kept plan outlives the moment in which an ended job's memory is on its way back."""
    plan = waiting.plan
    if plan is None or not _is(one.place, plan.node, plan.device):
        return False
    if any(part.pool.draining for part in one.parts):
        return True
    patience = board.knobs.drain_max_seconds + board.knobs.stale_seconds
    return board.snapshot.at <= plan.at + patience


def _bound(board: Board, waiting: Waiting, one: Look, kept_at: float) -> float:
    """Return the latest second for the kept plan: what it would be had no younger job started."""
    age = effective(waiting, board.knobs.ageing_hours)

    def without_younger(r: Running) -> float | None:
        if r.arrival > waiting.arrival and r.priority <= age:
            return 0.0
        return ends(board, r.node)[r.job].bar

    alone = earliest(board, one, without_younger)
    if alone.in_s is None or alone.in_s <= TOLERANCE:
        return kept_at  # it could have been by now: somebody is overdue, and the first planned time stays the bar
    at = board.snapshot.at + alone.in_s
    return at if at > kept_at + TOLERANCE else kept_at


def asking(board: Board, bar: Bar, waiting: Waiting) -> Aside:
    """Return the question whether this job, started at a place, would delay the plan."""
    in_s = bar.at - board.snapshot.at
    lasts = waiting.limit if waiting.limit is not None else waiting.learned

    def ask(place: Place, parts: tuple[Part, ...]) -> Check | None:
        mine = bar.look.place
        if place.node.name != mine.node.name:
            return None
        figures = {"for": bar.job, "at": bar.at, "in": in_s, "lasts": lasts}
        same = mine.device is None or place.uuid == mine.uuid
        if in_s <= 0 and same:
            words = f"{mine.label} is set aside for #{bar.job}, whose planned time has come."
            return Check(Code.SET_ASIDE, False, words, figures)
        if lasts is not None and lasts <= in_s:
            words = f"Ends before #{bar.job} is planned on {mine.label}, in {text.seconds(in_s)}."
            return Check(Code.SET_ASIDE, True, words, figures)
        if not _closes(bar, waiting, same, parts) and _leaves(board, bar, parts, in_s):
            return Check(Code.SET_ASIDE, True, f"Leaves #{bar.job} all that its plan needs.", figures)
        words = (
            f"{mine.label} is set aside for #{bar.job} in {text.seconds(max(0.0, in_s))}; "
            f"{'this run may last longer' if lasts is not None else 'how long this run takes is unknown'}."
        )
        return Check(Code.SET_ASIDE, False, words, figures)

    return ask


def _closes(bar: Bar, waiting: Waiting, same: bool, parts: tuple[Part, ...]) -> bool:
    """Return whether mere presence would be in the planned job's way, however much memory is left."""
    theirs, own = bar.exclusive, waiting.request.exclusive
    if Exclusive.MACHINE in (theirs, own):
        return True
    if not same or bar.look.place.device is None:
        return False
    return Exclusive.DEVICE in (theirs, own) or bar.look.place.device.exclusive_only or parts[0].cold


def _leaves(board: Board, bar: Bar, parts: tuple[Part, ...], in_s: float) -> bool:
    """Return whether both fit at the planned time, in every pool that they share."""
    node = bar.look.place.node.name
    until = ends(board, node)

    def gone(job: int) -> bool:
        end = until[job].bar
        return end is not None and end <= in_s + TOLERANCE

    theirs = {p.pool.pool: p for p in bar.look.parts}
    for part in parts:
        other = theirs.get(part.pool.pool)
        if other is None:
            continue
        ledger = board.ledger(part.pool, part.ledger.measurable)
        left = left_at(ledger, gone, max(part.margin, other.margin))
        wanted = other.least if other.cold or other.need is None else other.need
        if left is None or part.need is None or wanted + part.need > left:
            return False
    return True
