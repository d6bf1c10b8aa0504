"""When each waiting job is expected to start: the queue played forward, with lengths drawn from what was learned.

Each play draws another quantile for every run, so that over all plays each run's quantiles are covered evenly; half of
the plays start a job by ``in_s``, nine of ten by ``late_s``. A long queue gets fewer plays in the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf

from placement.domain.admission.decision import Code, PlannedStart
from placement.domain.admission.demands import Demand, waiting_demand
from placement.domain.admission.gate import about_job, barred, look
from placement.domain.admission.many_devices import all_places
from placement.domain.admission.places import Board
from placement.domain.admission.prerequisites import never_under
from placement.domain.forecasting.playing import Play
from placement.domain.forecasting.stage import Stage, Start, Turn, turns
from placement.domain.planning.bars import Bar, bar_for
from placement.domain.world import text
from placement.domain.world.conditions import After, never_met
from placement.domain.world.durations import Sure, quantile
from placement.domain.world.snapshot import Waiting

MOST_PLAYS = 9
ENDS_BY_ITSELF = frozenset({Code.DEPENDS, Code.NOT_BEFORE, Code.ARRAY_LIMIT, Code.QUOTA})
"""What stands against a job and is part of the play."""
STARTS_PLAYED = 800  # over all plays, so that the time does not grow with the queue
_GOLDEN = 0.6180339887498949  # a step whose multiples are spread evenly between 0 and 1


def forecast(board: Board, queue: Sequence[Waiting], bar: Bar | None = None) -> Mapping[int, PlannedStart]:
    """Return when each waiting job is expected to start, by job, seconds from the snapshot.

    ``board`` is the machine after the cycle's starts, ``queue`` who still waits, in order, ``bar`` the plan that is
    kept. A pure function; whoever cannot be told a time is told why.
    """
    found: dict[int, PlannedStart] = {}
    playing: list[tuple[Waiting, Demand]] = []
    demands: dict[tuple[int, int], Demand] = {}
    for waiting in queue:
        refused = _refused(board, waiting)
        if refused:
            found[waiting.job] = PlannedStart("", (), None, None, why_none=refused)
        else:
            key = id(waiting.request), id(waiting.estimate)
            if key not in demands:
                demands[key] = waiting_demand(waiting)
            playing.append((waiting, demands[key]))
    if not playing:
        return found  # setting the stage costs more than the rest of a cycle in which everybody starts
    stage = Stage(board)
    order = turns(stage, playing)
    plays = _plays(stage, order, _given(stage, bar))
    never: dict[int, str] = {}
    for number, ((waiting, demand), turn) in enumerate(zip(playing, order, strict=True)):
        starts = [play[number] for play in plays]
        told = _told(stage, starts)
        if bar is not None and bar.job == waiting.job:
            told = _kept(board, bar, told)
        if told is None:
            if turn.kind not in never:
                never[turn.kind] = stage.shut.get(turn.kind) or _why_never(board, waiting, demand)
            why = _waits_for(turn, found) or never[turn.kind]
            told = PlannedStart("", (), None, None, why_none=why)
        found[waiting.job] = told
    return found


def soonest(queue: Iterable[Waiting], wall: float) -> Mapping[int, float]:
    """Return in how many seconds from ``wall`` jobs may start at the soonest, by job; those that may at once left out.

    Whoever waits for another waits for its time, too.
    """
    found: dict[int, float] = {}
    for waiting in sorted((w for w in queue if w.conditions is not None), key=lambda w: w.job):
        by = waiting.conditions
        if by is None:
            continue
        own = 0.0 if by.not_before is None else by.not_before - wall
        at = max([own, *(found.get(tie.on, 0.0) for tie in by.after if not tie.met)])
        if at > 0.0:
            found[waiting.job] = at
    return found


def _refused(board: Board, waiting: Waiting) -> str:
    """Return what stands against a job and does not end by itself or by the end of others, "" for nothing."""
    if not barred(board, waiting):
        return ""
    by = waiting.conditions
    if by is not None:
        only = [tie.on for tie in by.after if tie.when is After.FAILED and not tie.met]
        told = never_met(waiting.job, by.after) or (f"It starts only if {text.jobs(only)} fails." if only else "")
        never = None if told else never_under(by.quota, waiting.request, waiting.estimate)
        if told or never is not None:
            return told or (never.sentence if never is not None else "")
    return next((c.sentence for c in about_job(board, waiting) if not c.ok and c.code not in ENDS_BY_ITSELF), "")


def _waits_for(turn: Turn, found: Mapping[int, PlannedStart]) -> str:
    """Return the sentence for a job that waits for others of which nobody can tell when they end."""
    unknown = [job for job in turn.after if job not in found or found[job].in_s is None]
    return f"It waits for the end of {text.jobs(unknown)}, and when that is cannot be told." if unknown else ""


def _given(stage: Stage, bar: Bar | None) -> tuple[int, int, float] | None:
    """Return the kept plan as (job, pool, seconds from now)."""
    if bar is None:
        return None
    return bar.job, stage.number(bar.look.parts[0].pool), bar.at - stage.board.snapshot.at


def _plays(stage: Stage, order: Sequence[Turn], given: tuple[int, int, float] | None) -> list[list[Start | None]]:
    """Return the starts of each play, by turn."""
    count = max(1, min(MOST_PLAYS, STARTS_PLAYED // max(1, len(order))))
    knobs = stage.board.knobs
    found = []
    for play in range(count):
        shift = (play + 0.5) / count
        # A length of its own for each; one that is not known to end has begun already, so a new run always ends.
        lasts = [t.length.left(0.0, (t.job * _GOLDEN + shift) % 1.0, knobs) or 0.0 for t in order]
        left = {h.job: h.length.left(h.elapsed, (h.job * _GOLDEN + shift) % 1.0, knobs) for h in stage.holdings}
        found.append(Play(stage, order, lasts, left, given).run())
    return found


def _told(stage: Stage, starts: Sequence[Start | None]) -> PlannedStart | None:
    """Return what several plays say of one job; None where fewer than half of them start it."""
    if len(starts) == 1:
        return None if starts[0] is None else _start(stage, starts[0], starts[0].at, starts[0].at, starts[0].sure)
    known = sorted((s for s in starts if s is not None), key=lambda s: s.at)
    if 2 * len(known) <= len(starts):
        return None
    times = [*(s.at for s in known), *[inf] * (len(starts) - len(known))]
    low, high = times[(len(times) - 1) // 2], times[len(times) // 2]
    in_s = (low + high) / 2 if high < inf else low
    late_s = max(in_s, quantile(times, 0.9))
    near = min(known, key=lambda s: abs(s.at - in_s))
    return _start(stage, near, in_s, late_s if late_s < inf else None, min(s.sure for s in known))


def _start(stage: Stage, near: Start, in_s: float, late_s: float | None, sure: Sure) -> PlannedStart:
    place = near.spot.place
    at = stage.board.snapshot.at + in_s
    members = [*place.devices, *(stage.device_of[pool] for pool in near.others)]
    uuids = tuple(device.uuid for device in sorted(members, key=lambda d: (d.index, d.uuid)))
    return PlannedStart(place.node.name, uuids, at, in_s, sure.word, near.waited, late_s=late_s)


def _kept(board: Board, bar: Bar, told: PlannedStart | None) -> PlannedStart:
    """Return the forecast of the job whose plan is kept: never later than the plan, whatever a play says."""
    plain = bar.planned(board.snapshot.at)
    if told is None or told.in_s is None or plain.in_s is None:
        return plain
    in_s = min(plain.in_s, told.in_s)
    late_s = None if told.late_s is None else max(in_s, told.late_s)
    return replace(plain, in_s=in_s, late_s=late_s, sure=told.sure, waits_for=told.waits_for or plain.waits_for)


def _why_never(board: Board, waiting: Waiting, demand: Demand) -> str:
    looks = [look(board, demand, place) for place in all_places(board, demand)]
    made = bar_for(board, waiting, looks)
    return made if isinstance(made, str) else "It waits behind older jobs whose own start cannot be told."


__all__ = ["forecast", "soonest"]
