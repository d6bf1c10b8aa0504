"""One prune: readings past their keep, run directories past days or GiB, decisions of jobs long ended."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.utils import timezone

from calibration import services as instrument
from placement import snapshots
from placement.domain.jobs import State
from placement.models import DecisionRecord, Job

_GIB = 1 << 30


def prune() -> int:
    """Delete what is past its keep on this node; pinned runs and runs that go on stay. Return things deleted."""
    now = timezone.now()
    knobs, _ = snapshots.knobs_now()
    gone = instrument.prune(now)
    old = now - timedelta(days=knobs.keep_run_days)
    gone += DecisionRecord.objects.filter(job__state=State.FINISHED, job__ended_at__lt=old).delete()[0]
    return gone + _run_directories(old.timestamp(), int(knobs.keep_run_gib * _GIB))


def _run_directories(oldest: float, most: int) -> int:
    if not settings.RUNS.is_dir():
        return 0
    directories = sorted(
        (d for d in settings.RUNS.iterdir() if d.is_dir()), key=lambda d: d.stat().st_mtime, reverse=True
    )
    keep = _kept_jobs({_job_id(d) for d in directories} - {None})
    total = gone = 0
    for directory in directories:
        size = sum(f.stat().st_blocks * 512 for f in directory.rglob("*") if f.is_file() and not f.is_symlink())
        total += size
        job_id = _job_id(directory)
        if job_id is None or job_id in keep:
            continue
        if total > most or directory.stat().st_mtime < oldest:
            shutil.rmtree(directory, ignore_errors=True)
            gone += 1
    return gone


def _kept_jobs(ids: set[int | None]) -> set[int]:
    known = Job.objects.filter(pk__in=[i for i in ids if i is not None])
    return set(known.exclude(state=State.FINISHED).values_list("pk", flat=True)) | set(
        known.filter(pinned=True).values_list("pk", flat=True)
    )


def _job_id(directory: Path) -> int | None:
    head = directory.name.split("-")[0]
    return int(head) if head.isdigit() else None
