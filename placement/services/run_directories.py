"""Directories of ended runs: kept for days and up to GiB, the oldest go first; pinned ones and those in use stay."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from django.conf import settings

from placement.domain.jobs import State
from placement.models import Job

AT_ONCE = 500  # directories whose jobs are asked for together
_UNFINISHED = [state.value for state in State if state is not State.FINISHED]

_sizes: dict[str, int] = {}  # bytes of directories of ended runs, which do not change any more


def prune(oldest: float, most_gib: float, seconds: float) -> int:
    """Remove directories last changed before ``oldest`` (unix seconds) or beyond the GiB; return how many.

    Sizes are measured once, newest first; one that the time did not suffice for counts from a later prune on.
    """
    if not settings.RUNS.is_dir():
        return 0
    end = time.monotonic() + seconds
    found = sorted(_directories(), reverse=True)  # read before the jobs: what comes later is in no danger
    used = set(Job.objects.filter(state__in=_UNFINISHED).values_list("pk", flat=True))
    for gone in set(_sizes) - {name for _, name in found}:
        del _sizes[gone]
    doomed: list[tuple[int, str]] = []
    total = 0
    for changed, name in found:
        job_id = _job_id(name)
        total += _size(name, end, changes=job_id in used)
        if job_id is not None and job_id not in used and (total > most_gib * (1 << 30) or changed < oldest):
            doomed.append((job_id, name))
    return _remove(doomed[::-1], end)


def _remove(doomed: list[tuple[int, str]], end: float) -> int:
    gone = 0
    for first in range(0, len(doomed), AT_ONCE):
        some = doomed[first : first + AT_ONCE]
        ids = {job_id for job_id, _ in some}
        pinned = set(Job.objects.filter(pk__in=ids, pinned=True).values_list("pk", flat=True))
        for job_id, name in some:
            if job_id in pinned:
                continue
            shutil.rmtree(settings.RUNS / name, ignore_errors=True)
            gone += 1
            if time.monotonic() >= end:
                return gone
    return gone


def _directories() -> list[tuple[float, str]]:
    """Return when each directory changed last, and its name."""
    found = []
    with os.scandir(settings.RUNS) as entries:
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    found.append((entry.stat(follow_symlinks=False).st_mtime, entry.name))
    return found


def _size(name: str, end: float, *, changes: bool) -> int:
    if changes:
        return _measure(settings.RUNS / name)
    if name not in _sizes and time.monotonic() < end:
        _sizes[name] = _measure(settings.RUNS / name)
    return _sizes.get(name, 0)


def _measure(directory: Path) -> int:
    size = 0
    for folder, _, files in os.walk(directory):
        for file in files:
            with suppress(OSError):
                size += os.lstat(os.path.join(folder, file)).st_blocks * 512
    return size


def _job_id(name: str) -> int | None:
    head = name.split("-")[0]
    return int(head) if head.isascii() and head.isdecimal() and len(head) < 19 else None
