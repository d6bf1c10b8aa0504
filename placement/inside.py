"""Read what running jobs hold and ask for besides what they started with: two queries a snapshot, for all jobs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.utils import timezone

from calibration.domain import keys
from calibration.domain.charge import held
from calibration.domain.samples import RAM
from placement import conditions
from placement.domain.admission.inside import read, waiting_of
from placement.domain.knobs import Knobs
from placement.domain.leasing.cycles_text import asked
from placement.domain.world.conditions import Quota
from placement.domain.world.known_asks import Known, Pending, from_json
from placement.domain.world.requests import Exclusive
from placement.domain.world.snapshot import Charge, Running, Waiting
from placement.models import AskedLater, InsideRequest, Job, Lease, RequestState

BASIS = "promise"
"""The basis of a job's charge in a pool of which it holds nothing but what it asked for while it ran."""

UNHELD = "unheld"
"""The mark of a charge where a job holds nothing and is measured all the same: that is taken until it is gone."""

Promised = Mapping[int, Mapping[str, int]]
"""Bytes by job and pool id that were granted while the jobs ran."""


def unheld(job: Job, holds: Container[str]) -> dict[str, int | None]:
    """Return what a running job is measured to use of devices of which it holds nothing, None where it is not told.

    That counts as taken until a later sample says that it is gone, whatever the job once held there.
    """
    apart = (RAM, *job.devices)  # a device of its own without a charge is charged as main memory
    return {pool: n for pool, n in job.used.items() if n != 0 and pool not in holds and pool not in apart}


def mirrored(
    job: Job, promised: Mapping[str, int], shared: Container[str] = (), alone: Container[str] = ()
) -> dict[str, dict[str, Any]]:
    """Return a job's charges with what it was granted since its start, for the tick's row of it: pages read that.

    What it uses of devices of which it holds nothing is with them, but for those that share main memory. ``alone`` are
    the devices that it was granted with nobody beside it.
    """
    charges: dict[str, dict[str, Any]] = {}
    for pool, charge in job.charges.items():
        if charge.get("basis") == BASIS:
            continue
        more = promised.get(pool, 0)
        plain = {name: value for name, value in charge.items() if name != "inside"}
        whole = held(charge["granted"] + more, job.used.get(pool))
        charges[pool] = {**plain, "held": whole, "inside": more} if more or "inside" in charge else charge
    for pool, more in promised.items():
        if pool not in charges:
            whole = held(more, job.used.get(pool))
            charges[pool] = {
                "granted": more, "held": whole, "at_start": 0, "cap": None, "margin": 0, "basis": BASIS,
                "settled": True, "note": "asked for while it ran", "inside": more, "promise": True,
                **({"alone": True} if pool in alone else {}),
            }  # fmt: skip
    for pool, used in unheld(job, charges).items():
        if pool not in shared:
            charges[pool] = {
                "granted": 0, "held": used or 0, "at_start": 0, "cap": None, "margin": 0, "basis": BASIS,
                "settled": False, "note": "no lease there: what it uses counts as taken until it is gone",
                UNHELD: True,
            }  # fmt: skip
    return charges


def brought_up(jobs: Sequence[Job], shared: Container[str] = ()) -> list[Job]:
    """Bring the charges of jobs in hand in line with what they were granted since; return those that changed.

    ``shared`` are the devices that have no memory but the node's RAM.
    """
    rows, changed = leases(job.pk for job in jobs), []
    lent = promised(rows)
    alone = {(row.job_id, row.pool) for row in rows if row.request and row.request.ask.get("exclusive")}
    for job in jobs:
        mine = {pool for owner, pool in alone if owner == job.pk}
        before, job.charges = job.charges, mirrored(job, lent.get(job.pk, {}), shared, mine)
        if before != job.charges:
            changed.append(job)
    return changed


def granted(charge: Mapping[str, Any]) -> int:
    """Return all that a job was granted of a pool, by its charge there: at its start and since."""
    return int(charge["granted"]) + (0 if charge.get("basis") == BASIS else int(charge.get("inside", 0)))


def whole(running: Running, job: Job) -> Running:
    """Return a job as the watchdog judges it: what it was granted while it ran is in its charges, by its row."""
    charges = dict(running.charges)
    for pool, charge in job.charges.items():
        if more := charge.get("inside", 0):
            used = job.used.get(pool)
            mine = charges.get(pool) or Charge(0, 0, used, 0, settled=True, promise=True)
            charges[pool] = _with(mine, more)
    return replace(running, charges=charges)


def leases(jobs: Iterable[int] | None = None) -> list[Lease]:
    """Return the live leases that were asked for inside jobs, with their requests; ``jobs`` None: of all."""
    rows = Lease.objects.filter(released_at=None, request__isnull=False).select_related("request")
    # Sorted here: asked for in order, SQLite goes through the table by its key.
    return sorted(rows if jobs is None else rows.filter(job__in=list(jobs)), key=lambda lease: lease.pk)


def promised(rows: Iterable[Lease]) -> Promised:
    """Return the bytes of these leases by job and pool."""
    found: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for lease in rows:
        found[lease.job_id][lease.pool] += lease.bytes
    return found


def standing(
    running: Sequence[Running],
    rows: Sequence[Lease],
    used: Mapping[int, Mapping[str, int | None]],
    asking: Container[tuple[int, str]] = (),
    context: int = 0,
) -> list[Running]:
    """Return the jobs with what they were granted since: added to a pool that they hold already, else beside them.

    ``used`` is by job and pool. A promise counts whole until its holder lets go, used or not; and what a job is
    measured to use without holding any of that device, until it is gone: by its bytes, too, but for the ``context``
    bytes of a job that asks for some of the device (``asking``, job and pool). The measured room is less by them, and
    while its process lives they would be in its way for ever.
    """
    own = {r.job: r for r in running}
    found = dict(own)
    beside: dict[tuple[int, str], Running] = {}
    for lease in rows:
        job = own.get(lease.job_id) or _ended(lease)
        now = used.get(lease.job_id, {}).get(lease.pool)
        if lease.pool in job.charges:
            mine = found[lease.job_id]
            found[lease.job_id] = replace(
                mine, charges={**mine.charges, lease.pool: _with(mine.charges[lease.pool], lease.bytes)}
            )
            continue
        key = lease.job_id, lease.pool
        before = beside.get(key)
        whole = lease.bytes + (before.charges[lease.pool].granted if before else 0)
        alone = bool(lease.request and lease.request.ask.get("exclusive")) or (
            before is not None and before.exclusive is not Exclusive.NO
        )
        beside[key] = replace(
            job,
            devices=(lease.pool,),
            charges={lease.pool: Charge(whole, max(whole, now or 0), now, whole, settled=True, promise=True)},
            margins={},
            cold=False,
            exclusive=Exclusive.DEVICE if alone else Exclusive.NO,
            more=True,
        )
    for r in running:
        for pool, now in used.get(r.job, {}).items():
            if now != 0 and pool != RAM and pool not in r.charges and pool not in r.devices:
                taken = 0 if now is None or (now <= context and (r.job, pool) in asking) else now
                left = replace(
                    r, devices=(pool,), charges={pool: Charge(0, taken, now, 0)}, margins={}, cold=False,
                    exclusive=Exclusive.NO, more=True,
                )  # fmt: skip
                beside.setdefault((r.job, pool), left)
    return [*found.values(), *beside.values()]


def asking() -> frozenset[tuple[int, str]]:
    """Return the jobs that wait for some of a device, each with every device that could serve."""
    rows = InsideRequest.objects.filter(state=RequestState.WAITING).values_list("job", "devices")
    return frozenset((job, device) for job, devices in rows for device in devices)


def _ended(lease: Lease) -> Running:
    """Return a job that has ended, of which an artifact still holds something: until its time is over."""
    job, until = lease.job, lease.request.outlives if lease.request else None
    left = None if until is None else max(0.0, (until - timezone.now()).total_seconds())
    user = job.user.get_username()
    return Running(job.pk, job.name, user, lease.node, {}, limit=left, arrival=job.pk, priority=job.priority)


def _with(charge: Charge, more: int) -> Charge:
    granted = charge.granted + more
    return replace(
        charge,
        granted=granted,
        held=held(granted, charge.used),
        at_start=charge.at_start + more,
        cap=None if charge.cap is None else charge.cap + more,
        promised=charge.promised + more,
    )


def quota_of(user: Any, knobs: Knobs) -> Quota | None:
    """Return how much device memory a user's jobs may hold, what they ask for as they run included; None: any."""
    found = conditions.quota_of(user, knobs)
    return None if found is None or found.vram is None else Quota(found.user, vram=found.vram)


def waiting(running: Iterable[Running], wall: float, knobs: Knobs) -> tuple[tuple[Waiting, ...], tuple[Pending, ...]]:
    """Return what the running jobs wait for: as the queue has it, and as it was asked.

    ``wall`` is unix seconds.
    """
    jobs = {r.job: r for r in running if not r.more}
    rows = InsideRequest.objects.filter(state=RequestState.WAITING).select_related("job__user__member").order_by("id")
    found, asks = [], []
    quotas: dict[str, Quota | None] = {}
    for row in rows:
        job = jobs.get(row.job_id)
        if job is None:
            continue
        ask = read(row.ask)
        whole = replace(ask, node=job.node)
        since, devices = row.asked_at.timestamp(), tuple(row.devices)
        asks.append(Pending(row.pk, whole, since, job.job, row.order, job.priority, devices))
        waited = max(0.0, wall - since)
        if job.user not in quotas:
            quotas[job.user] = quota_of(row.job.user, knobs)
        found.append(waiting_of(row.pk, ask, devices, job, quotas[job.user], order=row.order, waited=waited))
    return tuple(found), tuple(asks)


def later(jobs: Iterable[Job]) -> dict[int, tuple[Known, ...]]:
    """Return what runs like these are known to ask for while they run, by place among the jobs; equal ones share it."""
    found = {row.subject: from_json(row.asks) for row in AskedLater.objects.all()}
    if not found:
        return {}
    asked_ = ((n, keys.subject(job.key_workload, job.key_script, job.key_params)) for n, job in enumerate(jobs))
    return {n: found[subject] for n, subject in asked_ if subject in found}


def waits(jobs: Iterable[int], names: Mapping[str, str]) -> dict[int, list[str]]:
    """Return what running jobs wait for, in words, by job; ``names`` of devices by UUID."""
    found: dict[int, list[str]] = defaultdict(list)
    rows = InsideRequest.objects.filter(state=RequestState.WAITING, job__in=list(jobs)).order_by("id")
    for row in rows:
        found[row.job_id].append(f"waits for {asked(read(row.ask), [names.get(d, d) for d in row.devices])}")
    return found
