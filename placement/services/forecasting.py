"""After the cycle, outside its transaction: when waiting jobs are expected to start, and what became of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from django.db import DatabaseError, transaction

from placement.domain.admission.decision import PlannedStart
from placement.domain.forecasting.accuracy import Record, learned, moved, moved_far
from placement.domain.forecasting.forecast import soonest
from placement.domain.forecasting.told import predicted
from placement.domain.jobs import State
from placement.domain.planning.plan import Plan, plan
from placement.domain.world.snapshot import Snapshot, Waiting
from placement.models import Forecast, ForecastRecord, Job
from placement.selectors import expected

log = logging.getLogger(__name__)
_SOON = 1.0  # seconds between two rounds when somebody new waits
_CHANGED = 5.0  # when those who wait or run are others than before
_ANYHOW = 10.0  # when only time has passed
_RECORD_FRESH = 60.0  # seconds for which what was learned is used again
_RECORD_READ = 900  # newest forecasts that are learned from
MOST_ASKED = 200  # waiting jobs up to which one more is told a time before it is submitted
_MOST_KEPT = 6  # forecasts of one job whose outcome is kept, the first included
_FIELDS = ("made_at", "node", "device", "expected_at", "late_at", "sure", "waits_for", "why_none", "keeps")


@dataclass
class _Remembered:
    """What this process knows of its last round; all that must survive it is in the database."""

    at: float = float("-inf")  # monotonic
    waiting: frozenset[int] = frozenset()
    running: frozenset[int] = frozenset()
    record: Record = field(default_factory=Record)
    record_at: float = float("-inf")


_last = _Remembered()


def run_if_due(made: Plan | None) -> bool:
    """Foretell after a cycle if enough has changed or time has passed; ``made`` None: nobody waited in it."""
    now = time.monotonic()
    waiting, running = _who(made)
    age = now - _last.at
    changed = (waiting, running) != (_last.waiting, _last.running)
    if age < (_SOON if waiting - _last.waiting else _CHANGED if changed else _ANYHOW):
        return False
    if made is None and not changed and not _last.waiting and age < 6 * _ANYHOW:
        return False  # nobody waits and nobody did: what is still open is looked at now and then
    _last.at, _last.waiting, _last.running = now, waiting, running
    try:
        run(made)
    except DatabaseError as error:  # a forecast is no reason for a tick to fail: the next round comes
        log.warning("no forecasts this time: %s", error, extra={"action": "forecasts_failed"})
        return False
    return True


def _who(made: Plan | None) -> tuple[frozenset[int], frozenset[int]]:
    if made is None:
        return frozenset(), frozenset()
    waiting = frozenset(w.job for w in made.waits())
    return waiting, frozenset(r.job for r in made.board.snapshot.running) | frozenset(made.grants)


def run(made: Plan | None) -> None:
    """Fill in what became of earlier forecasts, and tell those who wait when they are expected to start."""
    close()
    if made is None:
        return
    record, plays = _record(), predicted(made)
    wall = made.board.snapshot.wall
    own = soonest(made.queue, wall)
    plays = {job: told for job, told in plays.items() if job > 0}  # a request of a running job has no record
    plays |= {job: _not_before(plays[job], until) for job, until in made.pressed.items() if job in plays}
    found = {job: record.corrected(told, own.get(job, 0.0)) for job, told in plays.items()}
    at = datetime.fromtimestamp(wall, UTC)
    _void(made, at)
    _tell(found, at)
    _keep({job: told for job, told in found.items() if job not in own and job not in made.pressed}, plays, at)


def ask(snapshot: Snapshot, waiting: Waiting) -> PlannedStart | None:
    """Return when one more job would be expected to start, None where it would not wait; nothing is stored.

    This is asked while somebody types. A long queue is not played for that: what is told is the number that waits.
    """
    if len(snapshot.waiting) > MOST_ASKED:
        why = f"{len(snapshot.waiting):,} jobs wait before it. Once it is one of them, a time is worked out."
        return PlannedStart("", (), None, None, why_none=why)
    made = plan(replace(snapshot, waiting=(*snapshot.waiting, waiting)))
    told = predicted(made).get(waiting.job)
    if told is not None and (until := made.pressed.get(waiting.job)) is not None:
        told = _not_before(told, until)
    return None if told is None else _record().corrected(told, soonest([waiting], snapshot.wall).get(waiting.job, 0.0))


def _not_before(told: PlannedStart, until: float) -> PlannedStart:
    """Return a forecast of a job that is held for so many seconds at most: no play knows of the requests in its way."""
    if told.in_s is None or told.at is None or told.in_s >= until:
        return told
    late = None if told.late_s is None else max(told.late_s, until)
    return replace(told, in_s=until, at=told.at - told.in_s + until, late_s=late)


def close() -> None:
    """Write down how long those waited that have started since, and drop what is told to nobody any more."""
    open_ = ForecastRecord.objects.filter(waited_s=None, void=False).exclude(job__state=State.QUEUED)
    done = list(open_.select_related("job").only("at", "waited_s", "void", "job__admitted_at"))
    for one in done:
        started = one.job.admitted_at
        one.void = started is None or started < one.at  # cancelled while it waited, or put back into the queue
        one.waited_s = None if one.void or started is None else (started - one.at).total_seconds()
    if done:
        ForecastRecord.objects.bulk_update(done, ["waited_s", "void"], batch_size=200)
    stale = Forecast.objects.exclude(job__state=State.QUEUED)
    if stale.exists():
        stale.delete()


def _void(made: Plan, at: datetime) -> None:
    """Let forecasts of jobs that somebody holds since out of the account: no play knows what people will do."""
    queue_held = made.board.snapshot.queue_hold is not None
    held = [w.job for w in made.queue if queue_held or w.hold is not None]
    if held:
        ForecastRecord.objects.filter(job__in=held, waited_s=None, void=False, at__lt=at).update(void=True)


def _tell(found: Mapping[int, PlannedStart], at: datetime) -> None:
    """Write the rows of those whose forecast is new or has moved by more than a rounding."""
    rows = Forecast.objects.in_bulk(list(found))
    changed = [_row(job, told, at) for job, told in found.items() if _is_news(rows.get(job), told, at)]
    if not changed:
        return
    with transaction.atomic():
        alive = set(Job.objects.filter(pk__in=[r.job_id for r in changed]).values_list("pk", flat=True))
        Forecast.objects.bulk_create(
            [row for row in changed if row.job_id in alive],
            update_conflicts=True,
            unique_fields=["job"],
            update_fields=list(_FIELDS),
            batch_size=90,
        )


def _row(job: int, told: PlannedStart, at: datetime) -> Forecast:
    return Forecast(
        job_id=job,
        made_at=at,
        node=told.node,
        device=told.device or "",
        expected_at=_later(at, told.in_s),
        late_at=_later(at, told.late_s),
        sure=told.sure,
        waits_for=list(told.waits_for),
        why_none=told.why_none[:500],
        keeps=told.keeps,
    )


def _later(at: datetime, seconds: float | None) -> datetime | None:
    """Return the moment so many seconds later; one beyond the calendar cannot be told."""
    try:
        return None if seconds is None else at + timedelta(seconds=seconds)
    except OverflowError:
        return None


def _is_news(row: Forecast | None, told: PlannedStart, at: datetime) -> bool:
    if row is None:
        return True
    before = (row.sure, tuple(row.waits_for[:1]), row.why_none, row.keeps)
    if before != (told.sure, told.waits_for[:1], told.why_none[:500], told.keeps):
        return True
    return moved(_ahead(row.expected_at, at), told.in_s) or moved(_ahead(row.late_at, at), told.late_s)


def _ahead(moment: datetime | None, at: datetime) -> float | None:
    return None if moment is None else (moment - at).total_seconds()


def _keep(found: Mapping[int, PlannedStart], plays: Mapping[int, PlannedStart], at: datetime) -> None:
    """Keep the first forecast of a job, and a few later ones that differ much from the one kept before."""
    newest: dict[int, ForecastRecord] = {}
    for one in ForecastRecord.objects.filter(job__in=list(found)).order_by("number"):
        newest[one.job_id] = one
    rows = []
    for job, told in found.items():
        last = newest.get(job)
        if last is not None:
            since = (at - last.at).total_seconds()
            before = None if last.in_s is None else last.in_s - since
            if last.number + 1 >= _MOST_KEPT or since < 60.0 or not moved_far(before, told.in_s):
                continue
        play = plays[job]
        rows.append(
            ForecastRecord(
                job_id=job,
                number=0 if last is None else last.number + 1,
                at=at,
                sure=told.sure,
                in_s=told.in_s,
                late_s=told.late_s,
                play_s=play.in_s,
                play_late_s=play.late_s,
                void=told.in_s is None,  # nothing was told, so nothing can be right or wrong
            )
        )
    if rows:
        ForecastRecord.objects.bulk_create(rows, ignore_conflicts=True, batch_size=90)


def _record() -> Record:
    now = time.monotonic()
    if now - _last.record_at > _RECORD_FRESH:
        _last.record, _last.record_at = learned(expected.past(most=_RECORD_READ)), now
    return _last.record


def forget() -> None:
    """Forget what this process remembers, as its death does."""
    global _last
    _last = _Remembered()
