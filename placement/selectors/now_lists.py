"""The lists of the page "Now": so many rows as one can look through, however many jobs there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, QuerySet

from placement.domain.jobs import ACTIVE, State
from placement.models import Device, Job
from placement.selectors import rows
from placement.selectors.asked import Asked
from placement.selectors.rows import ArrayRow, FinishedRow, RunningRow, WaitingRow
from placement.selectors.waiting_rows import Lines

PAGE = 50  # rows of one list at once
FINISHED_SHOWN = 20  # beside the other lists
RECENT = 5_000  # numbers below the newest among which a narrowed list looks for finished jobs


@dataclass(frozen=True, slots=True)
class Stretch:
    """Which rows of a list are shown: from the ``first`` (1 for the first) to the ``last``."""

    page: int
    first: int
    last: int
    more: bool


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits: ``count`` jobs in all, of arrays only the next one as a row of its own."""

    rows: tuple[WaitingRow | ArrayRow, ...]
    count: int
    stretch: Stretch
    next_start: datetime | None

    @property
    def owners(self) -> frozenset[str]:
        """Return whose rows are shown."""
        return frozenset(row.owner for row in self.rows)


@dataclass(frozen=True, slots=True)
class Running:
    """What has started and not ended."""

    rows: tuple[RunningRow, ...]
    count: int
    stretch: Stretch

    @property
    def owners(self) -> frozenset[str]:
        """Return whose rows are shown."""
        return frozenset(row.owner for row in self.rows)


@dataclass(frozen=True, slots=True)
class Finished:
    """What ended last; not counted, since it grows for ever."""

    rows: tuple[FinishedRow, ...]
    stretch: Stretch

    @property
    def owners(self) -> frozenset[str]:
        """Return whose rows are shown."""
        return frozenset(row.owner for row in self.rows)


_lines = Lines(rows.waiting)


def waiting(asked: Asked, viewer: int) -> Waiting:
    """Return what waits of what is asked for."""
    queued = asked.only(Job.objects.filter(state=State.QUEUED), viewer)
    heads = queued if asked.q or asked.reason or asked.device else _folded(queued)
    at = _start(asked)
    found = _lines.of(asked.ordered(heads, ("-priority", "id"))[at : at + PAGE + 1])
    shown = _with_others(found[:PAGE]) if heads is not queued else tuple(found[:PAGE])
    starts = [row.expected.at for row in found[:PAGE] if row.expected and row.expected.at]
    count = queued.count()
    return Waiting(shown, count, _stretch(at, len(shown), len(found) > PAGE), min(starts) if starts else None)


def running(asked: Asked, viewer: int, active: list[Job]) -> Running:
    """Return what runs of what is asked for; ``active`` are all that run, oldest first."""
    if not asked.all:
        wanted = asked.only(Job.objects.filter(state__in=[s.value for s in ACTIVE]), viewer)
        known = {job.pk: job for job in active}
        order = asked.ordered(wanted, ("admitted_at", "id")).values_list("pk", flat=True)
        active = [known[pk] for pk in order if pk in known]
    at = _start(asked)
    names = dict(Device.objects.values_list("uuid", "name"))
    shown = tuple(rows.running(job, names) for job in active[at : at + PAGE])
    return Running(shown, len(active), _stretch(at, len(shown), len(active) > at + PAGE))


def finished(asked: Asked, viewer: int) -> Finished:
    """Return what ended last; of what is asked for it looks among the newest jobs, the page Jobs looks further."""
    ended = Job.objects.filter(state=State.FINISHED)
    if asked.narrow or asked.sort:
        newest = Job.objects.order_by("-id").values_list("pk", flat=True).first() or 0
        ended = asked.only(ended.filter(pk__gt=newest - RECENT), viewer)
    at, size = _start(asked), PAGE if len(asked.states) == 1 else FINISHED_SHOWN
    by_end = asked.ordered(ended, ("-ended_at", "-id"))
    found = list(by_end.select_related("user").only(*rows.ENDED)[at : at + size + 1])
    shown = tuple(rows.finished(job) for job in found[:size])
    return Finished(shown, _stretch(at, len(shown), len(found) > size))


def _folded(queued: QuerySet[Job]) -> QuerySet[Job]:
    """Return the jobs without those that an equal one of their array, with the same priority, comes before."""
    before = Job.objects.filter(
        array_id=OuterRef("array_id"), state=State.QUEUED, priority=OuterRef("priority"), pk__lt=OuterRef("pk")
    )
    return queued.exclude(Exists(before))


def _with_others(found: list[WaitingRow]) -> tuple[WaitingRow | ArrayRow, ...]:
    arrays = {row.array for row in found if row.array is not None}
    if not arrays:
        return tuple(found)
    queued = Job.objects.filter(array_id__in=arrays, state=State.QUEUED)
    counted = queued.values_list("array_id", "priority").annotate(n=Count("pk"))
    counts = {(array, priority): n for array, priority, n in counted}
    shown: list[WaitingRow | ArrayRow] = []
    for row in found:
        others = counts.get((row.array, row.priority), 1) - 1
        shown.append(ArrayRow(row, row.array, others) if row.array is not None and others > 0 else row)
    return tuple(shown)


def _start(asked: Asked) -> int:
    """Return how many rows are skipped: pages are turned where one list is shown alone."""
    return (asked.page - 1) * PAGE if len(asked.states) == 1 else 0


def _stretch(at: int, shown: int, more: bool) -> Stretch:
    return Stretch(at // PAGE + 1, at + 1 if shown else 0, at + shown if shown else 0, more)
