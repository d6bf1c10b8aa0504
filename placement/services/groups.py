"""Hold the rest of a group (a person's equal jobs, or one sweep) after several of its runs failed fast in a row."""

from __future__ import annotations

import logging
from typing import Any

from django.utils import timezone

from placement import snapshots
from placement.domain.admission.decision import Code
from placement.domain.ending.streaks import HOLDER, SILENT, Run, streak, why
from placement.domain.jobs import Outcome, State
from placement.models import GroupHold, Job
from placement.services import audit, cycle_row, notices


def consider(job: Job) -> GroupHold | None:
    """Hold what waits of the group of a job that has just ended, if it was the last of a streak of fast failures.

    The caller holds the cycle row. A success breaks the streak; so does a release.
    """
    knobs, _ = snapshots.knobs_now()
    if not knobs.fast_failures or Outcome(job.outcome) is Outcome.COMPLETED:
        return None
    group, alike = _group(job), _alike(job)
    found = streak(_runs(group, alike, knobs.fast_failures), knobs.fast_failures, knobs.fast_failure_seconds)
    if not found:
        return None
    now, told = timezone.now(), why(found, knobs.fast_failure_seconds)
    held = Job.objects.filter(**alike, state=State.QUEUED, held_by="").update(
        held_by=HOLDER,
        held_at=now,
        held_until=None,
        held_why=told,
        code=Code.JOB_HELD.value,
        headline=f"This job is held by {HOLDER}: {told}."[:500],
    )
    if not held:
        return None
    logging.getLogger(__name__).warning("%s jobs are held: %s", held, told, extra={"action": "group_held"})
    notices.held(job, HOLDER, told, held)
    audit.record(None, "hold group", f"{held} jobs of {job.user.get_username()}", why=told)
    return GroupHold.objects.create(**group, why=told, jobs=[run.job for run in found], held_at=now)


def release(user: Any, job: Job) -> int:
    """Let all held jobs of this one's group start again, and begin the count anew; return how many those are."""
    group = _group(job)
    with cycle_row.changing():
        now = timezone.now()
        GroupHold.objects.filter(**group, released_at=None).update(released_at=now, released_by=user.get_username())
        released = Job.objects.filter(**_alike(job), state=State.QUEUED, held_by=HOLDER).update(
            held_by="",
            held_at=None,
            held_until=None,
            held_why="",
            code="",
            headline=f"Released by {user.get_username()}; waits its turn.",
        )
        audit.record(user, "release group", f"{released} jobs of {job.user.get_username()}", like=job.pk)
    return released


def _group(job: Job) -> dict[str, Any]:
    """Return by what the holds of a job's group are found."""
    names = ("user_id", "key_workload", "key_fingerprint", "key_params")
    group = {name: getattr(job, name) for name in names}
    if _of_sweep(job):
        group |= {"key_fingerprint": "", "key_params": f"sweep {job.array_id}"}
    return group


def _alike(job: Job) -> dict[str, Any]:
    """Return by what the jobs of a group are found: those of one key, or all of one sweep, whatever their values."""
    if _of_sweep(job):
        return {"user_id": job.user_id, "array_id": job.array_id}
    return {name: getattr(job, name) for name in ("user_id", "key_workload", "key_fingerprint", "key_params")}


def _of_sweep(job: Job) -> bool:
    return job.array is not None and bool(job.array.sweep)


def _runs(group: dict[str, Any], alike: dict[str, Any], count: int) -> list[Run]:
    """Return the group's last ended runs since its last release, newest first."""
    runs = Job.objects.filter(**alike, state=State.FINISHED).exclude(outcome__in=[o.value for o in SILENT])
    since = GroupHold.objects.filter(**group).exclude(released_at=None).order_by("-released_at").first()
    if since is not None:
        runs = runs.filter(ended_at__gt=since.released_at)
    told = runs.order_by("-ended_at", "-pk").values_list("pk", "outcome", "duration_s", "exit_code", "exit_signal")
    return [Run(pk, Outcome(o), seconds, code, signal) for pk, o, seconds, code, signal in told[:count]]
