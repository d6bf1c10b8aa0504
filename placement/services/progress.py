"""How far running jobs are, read from the ends of their logs every other second; little is read, less is written."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from statistics import median

from django.db import transaction
from django.utils import timezone

from calibration import rows
from placement.domain.forecasting import progress
from placement.domain.forecasting.progress import Seen
from placement.domain.jobs import ACTIVE, State
from placement.models import Job, JobProgress
from placement.selectors import logs
from placement.services import cycle_row

EVERY = 2.0  # seconds


@dataclass
class _Known:
    """What is known of one running job: its row as stored, and its logs as they were read last."""

    row: JobProgress
    marks: dict[str, tuple[int, int]] = field(default_factory=dict)  # stream -> size, time of the last change
    seen: dict[str, Seen] = field(default_factory=dict)


class Reader:
    """Follows the logs of one node's jobs."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] | None = None
        self._next = float("-inf")  # monotonic

    def look(self, jobs: Sequence[Job]) -> int:
        """Read what changed if it is time, and store what moved; return how many rows were written."""
        now = time.monotonic()
        if now < self._next:
            return 0
        self._next = now + EVERY
        running = {job.pk: job for job in jobs if job.state == State.RUNNING}
        if self._known is None:  # what a service before this one left
            self._known = {}
            JobProgress.objects.exclude(job__state__in=ACTIVE).delete()
        gone = self._known.keys() - running.keys()
        for pk in gone:
            del self._known[pk]
        changed = [self._begin(running[pk]) for pk in sorted(running.keys() - self._known.keys())]
        begun = {row.job_id for row in changed}
        for pk, job in running.items():
            row = _read(self._known[pk], job)
            if row is not None and pk not in begun:
                changed.append(row)
        _store(changed, gone)
        return len(changed)

    def _begin(self, job: Job) -> JobProgress:
        assert self._known is not None
        self._known[job.pk] = _Known(JobProgress(job_id=job.pk, usual_s=usual(job)))
        return self._known[job.pk].row


def usual(job: Job) -> float | None:
    """Return the seconds that the middle one of the runs like this took, None where none completed."""
    seen = rows.of_key(job.key_workload, job.key_params).filter(completed=True, forgotten=False)
    return median(found) if (found := list(seen.values_list("duration", flat=True)[:50])) else None


def _store(changed: Sequence[JobProgress], gone: Collection[int]) -> None:
    if not changed and not gone:
        return
    with cycle_row.in_line(), transaction.atomic():
        JobProgress.objects.bulk_create(
            changed,
            update_conflicts=True,
            unique_fields=["job"],
            update_fields=["share", "left_s", "read_at", "usual_s"],
        )
        if gone:
            JobProgress.objects.filter(pk__in=gone).delete()


def _read(known: _Known, job: Job) -> JobProgress | None:
    """Return the row with what the logs say now, None where that is not worth writing down."""
    changed = False
    for stream in logs.STREAMS:
        tail = _tail(known, job.run_dir, stream)
        if tail is None:
            continue
        changed = True
        before = known.seen.get(stream)
        seen = progress.parse(tail, before.epoch if before else None)
        if seen is not None:
            known.seen[stream] = seen
        else:
            known.seen.pop(stream, None)
    if not changed:
        return None
    best = _best(known)
    share = best.share if best else None
    if not progress.moved(known.row.share, share):
        return None
    now = timezone.now()
    elapsed = (now - job.started_at).total_seconds() if job.started_at else 0.0
    known.row.share, known.row.read_at = share, now if best else None
    known.row.left_s = progress.left(best, elapsed) if best else None
    return known.row


def _best(known: _Known) -> Seen | None:
    """Return what to believe: a line that is meant for us, else the log that was written last."""
    streams = sorted(known.seen, key=lambda stream: (known.seen[stream].told, known.marks[stream][1]))
    return known.seen[streams[-1]] if streams else None


def _tail(known: _Known, run_dir: str, stream: str) -> bytes | None:
    """Return the end of a log that changed since the last look, None where it did not."""
    with logs.opened(run_dir, stream) as descriptor:
        if descriptor is None:
            return None
        status = os.fstat(descriptor)
        mark = (status.st_size, status.st_mtime_ns)
        if known.marks.get(stream) == mark:
            return None
        known.marks[stream] = mark
        return os.pread(descriptor, progress.TAIL, max(0, status.st_size - progress.TAIL))
