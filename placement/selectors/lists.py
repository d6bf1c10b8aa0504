"""Lists that grow for ever, read by key: jobs above all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from django.contrib.auth.models import AbstractBaseUser
from django.db import models
from django.db.models import QuerySet

from placement.models import Job
from placement.selectors import rows, wording
from placement.selectors.asked import matching
from placement.selectors.rows import FinishedRow

PAGE = 50
SEARCHED = 50_000  # numbers that one search by name looks through
SHOWN = (
    "name", "array", "array_index", "user__username", "state", "outcome", "sentence", "headline", "basis", "estimate",
    "submitted_at", "started_at", "ended_at", "duration_s", "workers", "priority",
)  # fmt: skip
Row = TypeVar("Row")
Model = TypeVar("Model", bound=models.Model)
STATE_WORDS = {"queued": "waiting", "admitted": "starting", "running": "running"}


@dataclass(frozen=True, slots=True)
class JobLine:
    """One job of the list; ``word`` is its outcome, or its state while it has none."""

    line: FinishedRow
    basis: str
    chip: str
    submitted: datetime

    @property
    def kind(self) -> str:
        """Return which list of the page Now it is in: "waiting", "running" or "finished"."""
        return {"waiting": "waiting", "starting": "running", "running": "running"}.get(self.line.word, "finished")


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """One page of rows, newest first. ``older`` and ``newer`` are the keys to go on from, None where there is no more.

    ``searched`` are the first and the last number among which was looked for a text: not all at once.
    """

    lines: tuple[Row, ...]
    older: int | None
    newer: int | None
    searched: tuple[int, int] | None = None


def lines(page: Page[Job]) -> Page[JobLine]:
    """Return a page of jobs as the lines of a list."""
    return Page(tuple(_line(job) for job in page.lines), page.older, page.newer, page.searched)


def found(
    user: AbstractBaseUser,
    *,
    mine: bool,
    before: int | None,
    after: int | None = None,
    text: str = "",
    outcome: str = "",
    array: int | None = None,
) -> Page[Job]:
    """Return the jobs below (or above) this key, those of the user alone when ``mine``, of one array where named."""
    wanted = Job.objects.all() if array is None else Job.objects.filter(array_id=array)
    if mine:
        wanted = wanted.filter(user_id=user.pk)
    if outcome in STATE_WORDS:
        wanted = wanted.filter(state=outcome)
    elif outcome:
        wanted = wanted.filter(outcome=outcome) if outcome in wording.OUTCOMES else wanted.none()
    if text:
        return _search(wanted, text, before)
    return page_of(wanted.select_related("user").only(*SHOWN), before, after)


def _search(found: QuerySet[Job], text: str, before: int | None) -> Page[Job]:
    """Look through a stretch of numbers: a name can stand anywhere, and no index finds a part of it."""
    newest = Job.objects.order_by("-id").values_list("pk", flat=True).first() or 0
    top = newest if before is None else min(before - 1, newest)
    bottom = max(1, top - SEARCHED + 1)
    named = found.filter(matching(text[:100]), pk__gte=bottom, pk__lte=top).order_by("-id")
    ids = list(named.values_list("pk", flat=True)[: PAGE + 1])
    shown = Job.objects.filter(pk__in=ids[:PAGE]).select_related("user").only(*SHOWN).order_by("-id")
    full = len(ids) > PAGE
    older = ids[PAGE - 1] if full else bottom if bottom > 1 else None
    looked = (ids[PAGE - 1] if full else bottom, top)
    return Page(tuple(shown), older, None, looked if top else None)


def page_of(found: QuerySet[Model], before: int | None, after: int | None) -> Page[Model]:
    """Return the rows next to a key. What is newer than the first page's worth is the first page."""
    if after is not None:
        above = list(found.filter(pk__gt=after).order_by("id")[: PAGE + 1])[::-1]
        if len(above) > PAGE:
            above = above[1:]
            return Page(tuple(above), above[-1].pk, above[0].pk)
        before = None
    below = found if before is None else found.filter(pk__lt=before)
    rows = list(below.order_by("-id")[: PAGE + 1])
    newer = None if before is None else rows[0].pk if rows else max(0, before - 1)
    return Page(tuple(rows[:PAGE]), rows[PAGE - 1].pk if len(rows) > PAGE else None, newer)


def _line(job: Job) -> JobLine:
    line = rows.finished(job)
    if not job.outcome:
        state = STATE_WORDS[job.state]
        line = FinishedRow(
            job.pk, line.name, line.owner, state, "wait" if state == "waiting" else "run",
            job.headline if state == "waiting" else "", None, "",
        )  # fmt: skip
    basis = job.basis or str(wording.mapping(job.estimate).get("basis") or "")
    return JobLine(line, wording.rung(basis), wording.rung_class(basis) if basis else "", job.submitted_at)
