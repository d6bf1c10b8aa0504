"""Whether memory that was taken back is gone, and the end of a job that keeps it, where its workload says so.

What is still measured counts as taken by itself (``inside.unheld``); here it is only judged until a reading agrees.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from django.utils import timezone

from calibration.domain.resources import gib
from placement import inside, snapshots
from placement.domain.jobs import State
from placement.models import Device, InsideRequest, Job, Lease, RequestState
from placement.services import holding, lifecycle


def look(jobs: Sequence[Job]) -> None:
    """Judge what was taken back before this reading, then let go of what is due now."""
    _judge({job.pk: job for job in jobs})
    holding.look(jobs)


def _judge(jobs: dict[int, Job]) -> None:
    rows = InsideRequest.objects.filter(leaving=True, state=RequestState.REVOKED, job__in=list(jobs)).order_by("pk")
    taken = list(rows)
    if not taken:
        return
    held = _held(jobs[row.job_id] for row in taken)
    pools: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for request, pool, size in Lease.objects.filter(request__in=taken).values_list("request", "pool", "bytes"):
        pools[request].append((pool, size))
    context = snapshots.knobs_now()[1].bytes_of("context_allowance_mib")
    gone = []
    for row in taken:
        job = jobs[row.job_id]
        used = {pool: job.used.get(pool, 0) for pool, _ in pools[row.pk]}
        over = {pool: n - held[job.pk, pool] for pool, n in used.items() if n is not None}
        kept = {pool: min(size, over[pool]) for pool, size in pools[row.pk] if over.get(pool, 0) > context}
        if kept:
            _end(job, row, kept)
        elif len(over) == len(used):  # where the driver hides what it uses nobody can tell, so nobody is ended for it
            gone.append(row.pk)
    if gone:
        InsideRequest.objects.filter(pk__in=gone).update(leaving=False)


def _held(jobs: Iterable[Job]) -> dict[tuple[int, str], int]:
    """Return what jobs hold of each pool by now: by their start, and by leases that live."""
    found: dict[tuple[int, str], int] = defaultdict(int)
    own = {job.pk: job for job in jobs}
    for job in own.values():
        for pool, charge in job.charges.items():
            if charge.get("basis") != inside.BASIS:
                found[job.pk, pool] += charge["granted"]
    for lease in inside.leases(own):
        found[lease.job_id, lease.pool] += lease.bytes
    return found


def _end(job: Job, row: InsideRequest, kept: dict[str, int]) -> None:
    """End a job that keeps memory of what was taken back past its time, where its workload wants that."""
    at = row.revoke_at
    if at is None or at > timezone.now() or job.state != State.RUNNING or job.stop_requested_at is not None:
        return
    if not (job.workload and job.workload.revoked_ends):
        return
    names = dict(Device.objects.filter(uuid__in=kept, node__name=job.node).values_list("uuid", "name"))
    what = " and ".join(f"{gib(size)} on {names.get(pool, pool)}" for pool, size in kept.items())
    said = f"Ended: it kept {what} of what was taken back; its time to leave was over and its workload ends such jobs."
    lifecycle.stop_for(job, "revoked", said, {"kept": kept, "request": row.pk, "why": row.said})


__all__ = ["look"]
