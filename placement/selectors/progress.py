"""How far a running job is, as pages and the API say it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from placement.domain.forecasting.progress import by_length
from placement.domain.jobs import State
from placement.models import Job, JobProgress

WORDS = {"log": "read from its log", "usual": "by its usual length"}


@dataclass(frozen=True, slots=True)
class Progress:
    """A share in whole percent, so that it changes only when a figure does, and what it stands on: "log" or "usual".

    ``ends_about`` is to the minute; None where it cannot be told, or is over already.
    """

    percent: int
    source: str
    ends_about: datetime | None

    @property
    def words(self) -> str:
        """Return "62 % · read from its log"."""
        return f"{self.percent} % · {WORDS[self.source]}"


def of(job: Job) -> Progress | None:
    """Return how far a running job is, None where nothing tells. It wants ``select_related("progress")``."""
    row = _row(job)
    if row is None:
        return None
    now = timezone.now()
    if row.share is not None:
        end = row.read_at + timedelta(seconds=row.left_s) if row.read_at and row.left_s is not None else None
        return Progress(int(100 * row.share), "log", _minute(end, now))
    share = _by_length(job, row, now)
    if share is None or job.started_at is None:
        return None
    return Progress(int(100 * share), "usual", _minute(job.started_at + timedelta(seconds=row.usual_s or 0), now))


def as_json(job: Job) -> dict[str, Any] | None:
    """Return the same for the API: the exact share, what it stands on and when it was read."""
    row, shown = _row(job), of(job)
    if row is None or shown is None:
        return None
    share = row.share if row.share is not None else _by_length(job, row, timezone.now())
    return {
        "share": None if share is None else round(share, 4),
        "source": shown.source,
        "read_at": row.read_at,
        "ends_about": shown.ends_about,
    }


def _row(job: Job) -> JobProgress | None:
    if job.state != State.RUNNING:
        return None
    try:
        row: JobProgress = job.progress
    except JobProgress.DoesNotExist:
        return None
    return row


def _by_length(job: Job, row: JobProgress, now: datetime) -> float | None:
    return None if job.started_at is None else by_length((now - job.started_at).total_seconds(), row.usual_s)


def _minute(end: datetime | None, now: datetime) -> datetime | None:
    return None if end is None or end <= now else end.replace(second=0, microsecond=0)
