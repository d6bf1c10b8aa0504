"""Who holds what was reserved inside jobs: processes, their steps, artifacts. The last holder's end lets go.

Every function here is called by whoever holds the cycle row, but ``look`` and ``over``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from django.db.models import Q, QuerySet
from django.utils import timezone

from placement.models import InsideRequest, InsideSession, Job, Lease, RequestState
from placement.runner.identity import Identity, alive, read_boot_id
from placement.services import cycle_row
from placement.services.receipts import own_number

_OPEN = (RequestState.WAITING, RequestState.GRANTED)
_elsewhere: dict[int, Identity] = {}  # by session: who it is here, of one whose number is that of its container


class Step(Protocol):
    """What is told of a step; see ``reserving.Step``."""

    @property
    def key(self) -> str: ...
    @property
    def step(self) -> str: ...
    @property
    def iteration(self) -> int: ...
    @property
    def execution(self) -> int: ...
    @property
    def restartable(self) -> bool: ...


def session(job: Job, process: Mapping[str, Any], step: Step | None) -> InsideSession:
    """Return who asks: the step, else the process; made where it is new."""
    if step is None:
        key = process_key(process)
        fields: dict[str, Any] = {}
    else:
        key = step.key
        fields = {"step": step.step, "iteration": step.iteration, "restartable": step.restartable}
    row, _ = InsideSession.objects.get_or_create(
        job=job, attempt=job.attempt, key=key[:80], defaults={**fields, "process": dict(process)}
    )
    execution = 1 if step is None else step.execution
    if row.ended_at is not None or row.execution < execution:
        row.execution, row.ended_at, row.why_ended = max(row.execution, execution), None, ""
        row.save(update_fields=["execution", "ended_at", "why_ended"])
    return row


def process_key(process: Mapping[str, Any]) -> str:
    """Return the key of the session that stands for a process: it holds what no step does, and what steps leave."""
    return "process:{}:{}:{}".format(*(process.get(n) or "" for n in ("pid", "started", "namespace")))[:80]


def let_go(requests: Iterable[int]) -> int:
    """Release what these requests hold; return of how many."""
    now, ids = timezone.now(), list(requests)
    held = InsideRequest.objects.filter(pk__in=ids, state=RequestState.GRANTED)
    taken = held.exclude(revoke_at=None).update(state=RequestState.REVOKED, ended_at=now)
    count = taken + held.update(state=RequestState.RELEASED, ended_at=now)
    Lease.objects.filter(request__in=ids, released_at=None).update(released_at=now)
    return count


def end_step(row: InsideSession, outcome: str) -> None:
    """End a step: nothing more is granted to it, and what it holds passes to its process."""
    now = timezone.now()
    own = InsideRequest.objects.filter(session=row)
    own.filter(state=RequestState.WAITING).update(state=RequestState.WITHDRAWN, ended_at=now)
    if outcome == "restarts":  # it comes back under the same key, without what was taken from it
        taken = own.filter(state=RequestState.GRANTED, revoke_at__isnull=False)
        let_go(taken.values_list("pk", flat=True))
        return
    held = own.filter(state=RequestState.GRANTED)
    if held.exists():  # it lets go of them one by one; what it forgets ends with the process
        held.update(session=session(row.job, row.process, None))
    InsideSession.objects.filter(pk=row.pk, ended_at=None).update(ended_at=now, why_ended=outcome[:200])


def look(jobs: Sequence[Job]) -> int:
    """End the sessions of this node whose processes are gone, and what is due; return how many leases were let go."""
    known = {job.pk: job for job in jobs}
    rows = list(InsideSession.objects.filter(job__in=known, ended_at=None))
    for ended in _elsewhere.keys() - {row.pk for row in rows}:
        del _elsewhere[ended]
    gone = [row for row in rows if _gone(row, known[row.job_id])]
    due = _due()
    if not gone and not due.exists():
        return 0
    with cycle_row.changing():
        return _end(gone, "its process is gone") + let_go(due.values_list("pk", flat=True))


def _due() -> QuerySet[InsideRequest]:
    """Return what is held past its time: artifacts whose jobs are gone, and what was taken back."""
    now = timezone.now()
    past = Q(outlives__lte=now) & Q(session__ended_at__isnull=False)
    return InsideRequest.objects.filter(past | Q(revoke_at__lte=now), state=RequestState.GRANTED)


def _gone(row: InsideSession, job: Job) -> bool:
    """Return whether a process has ended; one that cannot be seen from here is not known to have."""
    process = row.process
    pid, started, space = process.get("pid"), process.get("started"), process.get("namespace")
    if not pid or not started:
        return False
    if space and space != _own_space():
        here = _elsewhere.get(row.pk) or _here(job, pid, started)
        if here is None:
            return False
        _elsewhere[row.pk] = here
        return not alive(here)
    return not alive(Identity(pid, started, process.get("boot") or read_boot_id()))


def _here(job: Job, pid: int, started: int) -> Identity | None:
    """Return which of a job's processes knows itself by this number, as in a container; None where none is seen."""
    for member in job.members:
        if member["start_ticks"] == started and own_number(member["pid"]) == pid:
            return Identity(member["pid"], started, member["boot_id"])
    return None


def _own_space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def over(jobs: Iterable[int]) -> None:
    """End all sessions of jobs that have ended; only what an artifact holds stays."""
    ended = list(jobs)
    _end(list(InsideSession.objects.filter(job__in=ended, ended_at=None)), "its job has ended")
    InsideRequest.objects.filter(job__in=ended, leaving=True).update(leaving=False)


def _end(rows: Sequence[InsideSession], why: str) -> int:
    ids, now = [row.pk for row in rows], timezone.now()
    if not ids:
        return 0
    InsideSession.objects.filter(pk__in=ids).update(ended_at=now, why_ended=why)
    own = InsideRequest.objects.filter(session__in=ids)
    own.filter(state=RequestState.WAITING).update(state=RequestState.WITHDRAWN, ended_at=now, said=f"Withdrawn: {why}.")
    held = own.filter(state=RequestState.GRANTED).exclude(outlives__gt=now)
    return let_go(held.values_list("pk", flat=True))


def revoke(row: InsideRequest, who: str, seconds: float) -> None:
    """Take a lease back: its holder has so many seconds to leave the device."""
    until = timezone.now() + timedelta(seconds=seconds)
    InsideRequest.objects.filter(pk=row.pk, state=RequestState.GRANTED, revoke_at=None).update(
        revoke_at=until, revoked_by=who[:150], said=f"Taken back by {who}.", leaving=True
    )


def notices(job: Job) -> list[dict[str, Any]]:
    """Return what a job is to be told of leases that were taken back: of a whole step, or one by one."""
    steps = InsideSession.objects.filter(job=job, attempt=job.attempt, ended_at=None).exclude(revoked={})
    rows = InsideRequest.objects.filter(job=job, attempt=job.attempt, revoke_at__isnull=False).select_related("session")
    single = rows.filter(session__ended_at=None, session__revoked={}).order_by("pk")[:100]
    return [*(of_step(row) for row in steps.order_by("pk")), *(notice(row) for row in single)]


def of_step(row: InsideSession) -> dict[str, Any]:
    """Return what a step is told that lost all that it held; it is for that execution alone."""
    left = max(0.0, row.revoked["at"] - timezone.now().timestamp())
    return {
        "session": row.key,
        "lease": None,
        "execution": row.revoked["execution"],
        "sentence": row.revoked["said"],
        "seconds_left": round(left, 1),
        "must_free": row.revoked["must_free"],
        "final": left <= 0,
    }


def notice(row: InsideRequest) -> dict[str, Any]:
    """Return what the holder of a lease is told of its being taken back."""
    if row.session.revoked.get("execution") == row.execution:
        return of_step(row.session)
    left = 0.0 if row.revoke_at is None else max(0.0, (row.revoke_at - timezone.now()).total_seconds())
    free = [{"uuid": m["uuid"], "bytes": m["bytes"]} for m in row.members]
    return {
        "session": None,
        "lease": row.pk,
        "execution": row.execution,
        "sentence": row.said or "It was taken back.",
        "seconds_left": round(left, 1),
        "must_free": free,
        "final": row.state == RequestState.REVOKED,
    }
