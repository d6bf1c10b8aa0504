"""What a job went through as stretches of one line: each reason while it stood, then its run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.utils import timezone

from placement.domain.jobs import State
from placement.models import Job
from placement.selectors import wording

SHOWN = 50  # verdicts that are read, newest first
LEAST = 1.5  # percent of the line that the shortest stretch takes
STEPS = 60  # an open line grows in such parts of itself, so that it does not move with each look
_COARSEST = 600.0  # seconds
KINDS = {
    **dict.fromkeys(("held", "job_held", "depends", "not_before", "array_limit", "quota", "no_account"), "quiet"),
    **dict.fromkeys(("placement_pressure", "set_aside"), "aside"),
    **dict.fromkeys(("infeasible", "node_stale", "node_no_work", "disk_low", "process_limit"), "stop"),
    **dict.fromkeys(("no_reading", "stale_reading", "device_lost"), "stop"),
}
"""The tone of a reason; "wait" for what is about room and company."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """One phase. ``x`` and ``width`` in percent of the line; ``until`` None while it lasts."""

    key: str  # the reason's code, or a state
    tone: str
    words: str
    sentence: str
    since: datetime
    until: datetime | None
    took: str
    times: int = 1  # verdicts that it is made of
    x: float = 0.0
    width: float = 0.0


def of(job: Job) -> tuple[Stretch, ...]:
    """Return the phases of a job, oldest first; () where there is nothing but the moment of its submission."""
    phases = list(_waits(job))
    begun = job.started_at or job.admitted_at
    if begun is not None:
        phases = [_closed(one, begun) for one in phases if one.since < begun]
        phases.append(_run(job, begun))
    elif job.ended_at is not None:
        phases = [_closed(one, job.ended_at) for one in phases]
    end = job.ended_at or _now(job.submitted_at)
    return _placed([one for one in phases if one.until is None or one.until > one.since], job.submitted_at, end)


def _waits(job: Job) -> list[Stretch]:
    """Return the reasons, each from when it was first told to when the next one was; equal neighbours are one."""
    columns = ("at", "verdict", "code", "headline")
    rows = list(job.history.order_by("-at", "-pk").values_list(*columns)[:SHOWN])
    found: list[Stretch] = []
    before = job.submitted_at
    if len(rows) == SHOWN:
        words = "earlier verdicts"
        found.append(Stretch("earlier", "faint", words, f"Only the last {SHOWN} verdicts are shown.", before, None, ""))
    for at, verdict, code, headline in reversed(rows):
        if verdict == "start":
            continue
        since = at if found else before
        if found and found[-1].key == code:
            found[-1] = replace(found[-1], sentence=headline, times=found[-1].times + 1)
            continue
        if found:
            found[-1] = _closed(found[-1], since)
        words = wording.CODES.get(code, code.replace("_", " ")) or "waits"
        found.append(Stretch(code, KINDS.get(code, "wait"), words, headline, since, None, ""))
    if not found and rows:
        found.append(Stretch("queued", "wait", "in the queue", "It fitted at its first turn.", before, None, ""))
    return found


def _run(job: Job, begun: datetime) -> Stretch:
    if job.ended_at is None:
        words = "starting" if job.state == State.ADMITTED else "running"
        return Stretch("run", "run", words, "", begun, None, "")
    word = wording.OUTCOMES.get(job.outcome, job.outcome)
    took = wording.span((job.ended_at - begun).total_seconds())
    return Stretch("run", wording.outcome_tone(job.outcome), f"ran, {word}", job.sentence, begun, job.ended_at, took)


def _closed(one: Stretch, until: datetime) -> Stretch:
    if one.until is not None and one.until <= until:
        return one
    return replace(one, until=until, took=wording.span((until - one.since).total_seconds()))


def _now(since: datetime) -> datetime:
    """Return the end of an open line: now, in steps that grow with it."""
    seconds = (timezone.now() - since).total_seconds()
    step = min(_COARSEST, max(10.0, seconds / STEPS // 10 * 10))
    return since + timedelta(seconds=max(step, (seconds // step + 1) * step))


def _placed(phases: Sequence[Stretch], start: datetime, end: datetime) -> tuple[Stretch, ...]:
    """Return the phases with their places on a line as long as all of it; the shortest can still be seen."""
    whole = max(1.0, (end - start).total_seconds())
    widths = [max(LEAST, 100 * ((one.until or end) - one.since).total_seconds() / whole) for one in phases]
    total = sum(widths) or 1.0
    placed, at = [], 0.0
    for one, width in zip(phases, widths, strict=True):
        share = round(100 * width / total, 2)
        placed.append(replace(one, x=round(at, 2), width=share))
        at += share
    return tuple(placed)
