"""One prune: what is past its keep goes, oldest first, in short steps; queued and running jobs are never touched."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from calibration import pruning
from placement import snapshots
from placement.domain.jobs import State
from placement.domain.world.known_asks import KEPT_S
from placement.models import (
    AskedLater,
    AuditEntry,
    DecisionRecord,
    Forecast,
    ForecastRecord,
    InsideRequest,
    InsideSession,
    Job,
    Lease,
    Notice,
    RequestState,
    WaitCycle,
)
from placement.services import run_directories

JOBS_AT_ONCE = 100  # jobs whose history goes in one transaction
SECONDS = 2.0  # the longest that one kind of thing takes; what is left goes with the next prune


def prune(seconds: float = SECONDS) -> int:
    """Delete what is past its keep; pinned run directories stay. Return how many things went.

    It can be stopped at any point and repeated: whatever is still past its keep goes with the next one.
    """
    now = timezone.now()
    knobs, _ = snapshots.knobs_now()
    keep = {
        1: knobs.keep_second_hours * 3600,
        10: knobs.keep_ten_days * 86400,
        300: knobs.keep_minutes_days * 86400,
    }
    audit = AuditEntry.objects.filter(at__lt=now - timedelta(days=knobs.keep_audit_days)).order_by("at")
    forecasts = ForecastRecord.objects.filter(at__lt=now - timedelta(days=knobs.keep_forecast_days)).order_by("at")
    told = Notice.objects.filter(at__lt=now - timedelta(days=knobs.keep_notice_days)).order_by("at")
    cycles = WaitCycle.objects.filter(at__lt=now - timedelta(days=knobs.keep_history_days)).order_by("at")
    asks = AskedLater.objects.filter(changed_at__lt=now - timedelta(seconds=KEPT_S)).order_by("changed_at")
    sessions = Session.objects.filter(expire_date__lt=now).order_by("expire_date")
    return (
        pruning.points(now.timestamp(), keep, seconds)
        + pruning.sediment(seconds)
        + pruning.repeated(_histories(now - timedelta(days=knobs.keep_history_days)), seconds)
        + pruning.repeated(_rows(audit), seconds)
        + pruning.repeated(_rows(forecasts), seconds)
        + pruning.repeated(_rows(told), seconds)
        + pruning.repeated(_rows(cycles), seconds)
        + pruning.repeated(_rows(asks), seconds)
        + pruning.repeated(_rows(sessions), seconds)
        + run_directories.prune(now.timestamp() - knobs.keep_run_days * 86400, knobs.keep_run_gib, seconds)
    )


def _histories(ended_before: datetime) -> Callable[[], int]:
    """Return a step that lets go of what led to the start of jobs that ended long ago, and says so on their rows."""
    due = Job.objects.filter(state=State.FINISHED, pruned_at=None, ended_at__lt=ended_before).order_by("ended_at")

    def step() -> int:
        ids = list(due.values_list("pk", flat=True)[:JOBS_AT_ONCE])
        if ids:
            with transaction.atomic():
                DecisionRecord.objects.filter(job__in=ids).delete()
                Forecast.objects.filter(job__in=ids).delete()
                InsideRequest.objects.filter(job__in=ids).exclude(state=RequestState.GRANTED).delete()
                InsideSession.objects.filter(job__in=ids, requests=None).delete()
                Lease.objects.filter(job__in=ids).exclude(released_at=None).delete()
                ended = Job.objects.filter(pk__in=ids, state=State.FINISHED)
                ended.update(decision={}, plan={}, members=[], pruned_at=timezone.now())
        return len(ids)

    return step


def _rows(old: QuerySet[Any]) -> Callable[[], int]:
    """Return a step that deletes the first of these rows."""

    def step() -> int:
        ids = list(old.values_list("pk", flat=True)[: pruning.AT_ONCE])
        return old.model._default_manager.filter(pk__in=ids).delete()[0] if ids else 0

    return step
