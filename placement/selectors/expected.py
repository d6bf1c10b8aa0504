"""When a waiting job is expected to start, as pages and the API say it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from placement.domain.forecasting.accuracy import LEAST, Past, Record, learned
from placement.models import Forecast, ForecastRecord, Job
from placement.selectors.wording import listing, mapping

COLUMNS = ("made_at", "node", "device", "expected_at", "late_at", "sure", "waits_for", "why_none", "keeps")
_FRESH = 60.0  # seconds for which the record is not read again
_DAYS_SHOWN = timedelta(days=30)  # further ahead than this a time is shown as a day
_READ = 900  # newest forecasts that it is made of
_lock = threading.Lock()
_record: tuple[float, Record] = (float("-inf"), Record())


@dataclass(frozen=True, slots=True)
class Expected:
    """A start that is expected by ``at`` with even chances and by ``late`` in nine of ten cases.

    ``at`` None: ``why_none`` says why it cannot be told. A guess is a stretch from ``early`` to ``late`` instead.
    ``right`` says how such forecasts did, "" while there are too few to tell. ``late`` None: not told, or no other
    day than ``at`` where only days are shown.
    """

    at: datetime | None
    early: datetime | None
    late: datetime | None
    sure: str
    waits_for: tuple[int, ...]
    why_none: str
    keeps: bool
    right: str = ""

    @property
    def guess(self) -> bool:
        """Return whether it stands on the length of a run of which nothing is known, or that outlasted what is."""
        return self.sure == "guess"

    @property
    def until(self) -> datetime | None:
        """Return the late end of a guess, None where it is the near one: then only that can be told."""
        return self.late if self.late != self.early else None


def of(job: Job) -> Expected | None:
    """Return what a waiting job is told, None before it was told anything."""
    try:
        row: Forecast = job.forecast
    except Forecast.DoesNotExist:
        return None
    return Expected(
        at=_minute(row.expected_at),
        early=_early(row.made_at, row.expected_at, job.not_before),
        late=_late(row.made_at, row.expected_at, row.late_at),
        sure=row.sure,
        waits_for=tuple(n for n in listing(row.waits_for) if isinstance(n, int)),
        why_none=row.why_none,
        keeps=row.keeps,
        right="" if job.not_before else _right(row),
    )


def preview(planned: Any, now: datetime, not_before: float | None = None) -> Expected | None:
    """Return the same of a decision that is stored nowhere; ``planned`` as in its JSON, ``not_before`` unix seconds."""
    body: Mapping[str, Any] = mapping(planned)
    if not body:
        return None
    at, late = (_after(now, body.get(name)) for name in ("in_s", "late_s"))
    why, sure = str(body.get("why_none") or ""), str(body.get("sure") or "guess")
    early = _early(now, at, None if not_before is None else datetime.fromtimestamp(not_before, UTC))
    return Expected(_minute(at), early, _late(now, at, late), sure, (), why, bool(body.get("keeps")))


def as_json(job: Job) -> dict[str, Any] | None:
    """Return what a waiting job is told, for the API; None before it was told anything."""
    try:
        row: Forecast = job.forecast
    except Forecast.DoesNotExist:
        return None
    return {
        "made_at": row.made_at,
        "expected_at": row.expected_at,
        "late_at": row.late_at,
        "sure": row.sure,
        "waits_for": row.waits_for,
        "why_none": row.why_none,
        "keeps": row.keeps,
        "node": row.node or None,
        "device": row.device or None,
    }


def past(since: datetime | None = None, most: int | None = None) -> list[Past]:
    """Return the newest stored forecasts first; those that told nothing, or count no more, are left out."""
    now = time.time()
    names = ("sure", "play_s", "play_late_s", "in_s", "late_s", "waited_s", "at")
    told = ForecastRecord.objects.filter(void=False, in_s__isnull=False, play_s__isnull=False).order_by("-at")
    if since is not None:
        told = told.filter(at__gte=since)
    return [
        Past(sure, play, play_late, in_s, late, waited, now - at.timestamp())
        for sure, play, play_late, in_s, late, waited, at in told.values_list(*names)[:most]
    ]


def _right(row: Forecast) -> str:
    if row.expected_at is None:
        return ""
    correction = _recent().of(row.sure, (row.expected_at - row.made_at).total_seconds())
    if correction.within is None or correction.count < LEAST:
        return ""
    return f"{round(10 * correction.within)} of 10 such forecasts were right"


def forget() -> None:
    """Read the record anew when it is next needed; for tests, each of which has a database of its own."""
    global _record
    with _lock:
        _record = (float("-inf"), Record())


def _recent() -> Record:
    global _record
    with _lock:
        if not 0 <= time.monotonic() - _record[0] < _FRESH:
            _record = (time.monotonic(), learned(past(most=_READ)))
        return _record[1]


def _minute(moment: datetime | None) -> datetime | None:
    """Return the moment to the minute: a forecast is no more exact than that."""
    return None if moment is None else moment.replace(second=0, microsecond=0)


def _early(made_at: datetime, expected_at: datetime | None, not_before: datetime | None) -> datetime | None:
    """Return the near end of a guess: half the time ahead, as good a word as any where nothing is known."""
    if expected_at is None:
        return None
    soonest = made_at if not_before is None else min(expected_at, max(made_at, not_before))
    return _minute(soonest + (expected_at - soonest) / 2)


def _late(made_at: datetime, expected_at: datetime | None, late_at: datetime | None) -> datetime | None:
    """Return the late end; None where it would be written as the other one is: of months ahead, days are shown."""
    if expected_at is not None and late_at is not None and expected_at - made_at > _DAYS_SHOWN:
        late_at = late_at if late_at - expected_at > timedelta(days=1) else None
    return _minute(late_at)


def _after(now: datetime, seconds: Any) -> datetime | None:
    if not isinstance(seconds, int | float):
        return None
    try:
        return now + timedelta(seconds=float(seconds))
    except OverflowError:
        return None
