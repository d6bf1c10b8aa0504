"""The plan of the first job that fits nowhere, and whether a younger start would delay it (EASY backfill)."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from placement.domain.admission.decision import Check, Code, PlannedStart
from placement.domain.admission.demands import Part
from placement.domain.admission.gate import Aside, Look
from placement.domain.admission.places import Board, Place
from placement.domain.planning.future import TOLERANCE, Earliest, Then, earliest, ends, line, wanted
from placement.domain.world import text
from placement.domain.world.requests import Exclusive, Gpu, Request
from placement.domain.world.snapshot import KeptPlan, Running, Waiting


@dataclass(frozen=True, slots=True)
class Bar:
    """A place and the absolute second from which it is set aside for a job."""

    job: int
    look: Look
    at: float
    exclusive: Exclusive
    shown: Earliest  # the forecast, overdue jobs counted as late
    inside: int = 0  # as in Waiting

    @property
    def whom(self) -> str:
        """Return whose plan it is, for sentences."""
        return text.whom(self.job, self.inside)

    def planned(self, now: float) -> PlannedStart:
        """Return it as a planned start: ``at`` is the second to keep, ``in_s`` the forecast shown."""
        in_s = max(0.0, self.at - now, self.shown.in_s or 0.0)
        place = self.look.place
        return PlannedStart(
            place.node.name,
            place.uuids,
            self.at,
            in_s,
            self.shown.sure.word,
            self.shown.waits_for,
            keeps=True,
        )


def rank(waiting: Waiting, ageing_hours: float) -> tuple[int, int, bool, int]:
    """Return the sort key of the queue: priority, raised by waiting, then arrival.

    What a running job asks for arrives with the number of the next job, before that one.
    """
    return -effective(waiting, ageing_hours), waiting.arrival, waiting.job > 0, abs(waiting.job)


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
    planned = {place.order for place in to_plan(waiting.request, [one.place for one in looks])}
    for one in looks:
        if one.place.order not in planned:
            continue
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
    mine = next((f for f in found if kept and is_of(f[1].place, kept)), None)
    if kept is not None and mine is not None:
        bound = _bound(board, waiting, mine[1], kept.at)
        if at >= bound - TOLERANCE:
            at, one = bound, mine[1]
    shown = earliest(board, one, lambda r: ends(board, r.node)[r.job].bar)
    return Bar(waiting.job, one, at, waiting.request.exclusive, shown, waiting.inside)


def to_plan(request: Request, places: Sequence[Place]) -> Sequence[Place]:
    """Return the places that a plan may be about: of a group's as few devices as do.

    More devices are never free earlier, unless they share what the group takes together.
    """
    if request.gpu is not Gpu.GROUP:
        return places
    least = min((len(place.devices) for place in places), default=0) if request.group_memory is None else 0
    return [p for p in places if len(p.devices) <= (least or len(p.devices))]


def is_of(place: Place, kept: KeptPlan) -> bool:
    """Return whether a kept plan is about this place."""
    return (place.node.name, place.uuids) == (kept.node, kept.devices)


def _still_due(board: Board, waiting: Waiting, one: Look) -> bool:
    """Return whether a kept plan outlives the moment in which an ended job's memory is on its way back."""
    plan = waiting.plan
    if plan is None or not is_of(one.place, plan):
        return False
    if any(part.pool.draining for part in one.parts):
        return True
    patience = board.knobs.drain_max_seconds + board.knobs.stale_seconds
    return board.snapshot.at <= plan.at + patience


def _bound(board: Board, waiting: Waiting, one: Look, kept_at: float) -> float:
    """Return the latest second for the kept plan: what it would be had no younger job started.

    It moves later where an older run lasts longer than was expected.
    """
    age = effective(waiting, board.knobs.ageing_hours)

    def without_younger(r: Running) -> float:
        if r.arrival > waiting.arrival and r.priority <= age:
            return 0.0
        return ends(board, r.node)[r.job].bar

    alone = earliest(board, one, without_younger)
    if alone.in_s is None or alone.in_s <= TOLERANCE:
        return kept_at  # it could have been by now: only younger ones are in the way
    at = board.snapshot.at + alone.in_s
    return at if at > kept_at + TOLERANCE else kept_at


class Delay(enum.Enum):
    """What a start would do to the plan of an older job."""

    ELSEWHERE = "elsewhere"
    ENDS_BEFORE = "ends before"
    LEAVES_ENOUGH = "leaves enough"
    HELD_UP = "held up"
    DUE = "due"
    IN_THE_WAY = "in the way"

    @property
    def harms(self) -> bool:
        """Return whether the plan would be delayed."""
        return self in (Delay.DUE, Delay.IN_THE_WAY)


class Guard:
    """The question whether a start would delay the plan, for any job at any place."""

    def __init__(self, board: Board, bar: Bar) -> None:
        self.board, self.bar = board, bar
        self.in_s = bar.at - board.snapshot.at
        self.node, self.devices = bar.look.place.node.name, bar.look.place.devices
        self._uuids = frozenset(device.uuid for device in self.devices)
        self._theirs = {part.pool.pool: part for part in bar.look.parts}
        self._thens: dict[str, Then] = {}
        self._version = -1

    def shared(self, place: Place) -> bool:
        """Return whether the place has a device of the plan's, or the plan needs none: then its whole node is."""
        theirs = self._uuids
        if not theirs:
            return True
        devices = place.devices
        if len(devices) == 1:
            return devices[0].uuid in theirs
        return any(device.uuid in theirs for device in devices)

    def delays(self, waiting: Waiting, place: Place, needs: Sequence[tuple[str, int, int]], cold: bool) -> Delay:
        """Return whether the plan would be delayed, and by what; needs are (pool, bytes, margin)."""
        if place.node.name != self.node:
            return Delay.ELSEWHERE
        if waiting.inside and self._held_up:
            return Delay.HELD_UP
        same = self.shared(place)
        if self.in_s <= 0 and same:
            return Delay.DUE
        lasts = duration(waiting)
        if lasts is not None and lasts <= self.in_s:
            return Delay.ENDS_BEFORE
        if self._closes(waiting.request.exclusive, place if same else None, cold) or not self._leaves(needs):
            return Delay.IN_THE_WAY
        return Delay.LEAVES_ENOUGH

    @property
    def _held_up(self) -> bool:
        """Return whether the plan waits for the end of a job that itself waits for more.

        What running jobs ask for then goes first: they would wait for the plan, and the plan for them, for ever.
        """
        asking = {w.inside for w in self.board.snapshot.waiting if w.inside}
        return any(r.job in asking for r in self.board.on_place(self.bar.look.place))

    def _closes(self, own: Exclusive, place: Place | None, cold: bool) -> bool:
        """Return whether mere presence would be in the planned job's way, however much memory is left.

        ``place`` None: it shares nothing with the plan.
        """
        theirs = self.bar.exclusive
        if Exclusive.MACHINE in (theirs, own):
            return True
        if place is None or not self.devices:
            return False
        if Exclusive.DEVICE in (theirs, own) or cold:
            return True
        return any(device.exclusive_only and device.uuid in place.uuids for device in self.devices)

    def _leaves(self, needs: Sequence[tuple[str, int, int]]) -> bool:
        """Return whether both fit at the planned time, in every pool that they share."""
        for pool, need, margin in needs:
            other = self._theirs.get(pool)
            if other is None:
                continue
            left = self._then(other).left(max(margin, other.margin))
            if left is None or wanted(other) + need > left:
                return False
        return True

    def _then(self, part: Part) -> Then:
        """Return a pool of the plan at the planned time, starts of this cycle included."""
        if self._version != self.board.version:
            self._thens, self._version = {}, self.board.version
        pool = part.pool
        if pool.pool not in self._thens:
            now = self.board.ledger(pool, part.ledger.measurable)
            self._thens[pool.pool] = line(self.board, now).then(self.in_s)
        return self._thens[pool.pool]


def duration(waiting: Waiting) -> float | None:
    """Return the seconds that a candidate is taken to last, None where nobody can tell."""
    return waiting.limit if waiting.limit is not None else waiting.learned


def asking(guard: Guard, waiting: Waiting) -> Aside:
    """Return the gate's question whether this job, started at a place, would delay the plan."""
    bar, in_s, lasts = guard.bar, guard.in_s, duration(waiting)
    figures = {"for": bar.inside or bar.job, "at": bar.at, "in": in_s, "lasts": lasts}
    label = bar.look.place.label
    longer = "this run may last longer" if lasts is not None else "how long this run takes is unknown"
    said = {
        Delay.DUE: f"{label} is set aside for {bar.whom}, whose planned time has come.",
        Delay.ENDS_BEFORE: f"Ends before {bar.whom} is planned on {label}, in {text.seconds(in_s)}.",
        Delay.HELD_UP: f"{label} is set aside for {bar.whom}, which waits for a job there that asks for more itself.",
        Delay.LEAVES_ENOUGH: f"Leaves {bar.whom} all that its plan needs.",
        Delay.IN_THE_WAY: f"{label} is set aside for {bar.whom} in {text.seconds(max(0.0, in_s))}; {longer}.",
    }

    def ask(place: Place, parts: tuple[Part, ...]) -> Check | None:
        needs = [(part.pool.pool, part.need or 0, part.margin) for part in parts]
        found = guard.delays(waiting, place, needs, parts[0].cold)
        return None if found is Delay.ELSEWHERE else Check(Code.SET_ASIDE, not found.harms, said[found], figures)

    return ask
