"""The whole queue as JSON: own fields in bytes, and the names that people who migrate know, in MiB."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Q
from django.utils import timezone

from calibration import clock
from calibration.domain.resources import MIB, total
from calibration.domain.samples import RAM
from calibration.models import PoolNow
from placement.domain.jobs import State
from placement.models import Cycle, Device, Job
from placement.models.holds import Holdable
from placement.selectors import alone, devices, expected
from placement.selectors.waiting_rows import Lines
from placement.selectors.wording import listing, mapping, whole

KINDS = ("vram", "ram")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what waits: so many jobs behind the one of this priority and number (None: from the first one on)."""

    limit: int
    after: tuple[int, int] | None = None


def queue(*, sees_commands: bool, part: Part | None = None) -> str:
    """Return, as JSON, pools, running and queued jobs with every reason, and the sums per kind of memory.

    ``part`` limits the queued ones, None: all of them. ``next`` is the key behind which the next part begins.
    """
    active = devices.active_jobs()
    every = Job.objects.filter(state=State.QUEUED)
    waiting = every.order_by("-priority", "id")
    following = None
    if part is not None:
        if part.after is not None:
            priority, number = part.after
            waiting = waiting.filter(Q(priority__lt=priority) | Q(priority=priority, pk__gt=number))
        ahead = list(waiting.values_list("priority", "pk")[part.limit - 1 : part.limit + 1])
        following = "{}.{}".format(*ahead[0]) if len(ahead) > 1 else None
        waiting = waiting[: part.limit]
    pools = list(PoolNow.objects.order_by("node", "pool"))
    there = {(d.node.name, d.uuid): d for d in Device.objects.select_related("node").filter(retired=False)}
    at = clock.now()
    cycle = Cycle.objects.filter(pk=1).first()
    told = {
        "at": timezone.now(),
        "held": hold(cycle) if cycle else None,
        "pools": [pool(p, at, sees_commands, _alone(p, there, active)) for p in pools],
        "running": [_running(job) for job in active],
        "measured_free_mb": {k: mib(total(p.free for p in pools if p.kind == k)) for k in KINDS},
        "pending_reservation_mb": {k: mib(_growth(active, k)) for k in KINDS},
        "attribution": {
            "sampled_at": timezone.now(),
            "resources": {k: _attribution([p for p in pools if p.kind == k], active) for k in KINDS},
        },
        "waiting": every.count(),
        "next": following,
    }
    lines = _lines if part is None else _part_lines
    return f'{_json(told)[:-1]}, "queued": [{", ".join(lines.of(waiting))}]}}'


def _json(value: Any) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder)


def mib(amount: int | None) -> int | None:
    """Return whole MiB, truncated; None stays None."""
    return None if amount is None else amount // MIB


def _alone(row: PoolNow, there: Mapping[tuple[str, str], Device], active: list[Job]) -> int | None:
    """Return the job that has a pool alone, of a device that is not declared any more as of RAM: the machine's."""
    found = alone.holder(active, row.node, there.get((row.node, row.pool)))
    return found.pk if found else None


def pool(row: PoolNow, at: float, sees_commands: bool, alone_by: int | None) -> dict[str, Any]:
    """Return what was read of one pool last, and which job has it alone."""
    who = [
        {"pid": w[0], "user": w[1], "bytes": w[3], **({"name": w[2]} if sees_commands else {})}
        for w in row.external_who
        if isinstance(w, list) and len(w) == 4
    ]
    age = clock.age(row.read_at, row.epoch, at)
    return {
        "node": row.node,
        "pool": row.pool,
        "kind": row.kind,
        "name": row.name,
        "state": row.state,
        "message": row.message,
        "simulated": row.simulated,
        "total": row.total,
        "free": row.free,
        "used": row.used,
        "reserved": row.reserved,
        "external": row.external,
        "external_who": who,
        "unexplained": row.unexplained,
        "left": [{"owner": one[0], "bytes": one[1], "until": one[2]} for one in listing(row.left) if len(one) == 3],
        "files": row.files,
        "alone": alone_by,
        "owners": row.owners,
        "age_s": None if age is None or age == float("inf") else round(age, 3),
    }


def _running(job: Job) -> dict[str, Any]:
    return {
        **_common(job),
        "state": job.state,
        "node": job.node,
        "device": job.device or None,
        "devices": list(job.devices),
        "started_at": job.started_at,
        "charges": job.charges,
        "used": job.used,
        "cancel_requested": job.stop_requested_at is not None,
        "admit_basis": job.basis,
        "admit_charges": {k: mib(_of_kind(job, k, "at_start")) for k in KINDS},
    }


def _queued(job: Job) -> str:
    decision = {**job.decision, "since": job.decided_at} if job.decision else None
    told = {
        **_common(job),
        "priority": job.priority,
        "submitted_at": job.submitted_at,
        "estimate": job.estimate,
        "headline": job.headline,
        "code": job.code or None,
        "decision": decision,
        "forecast": expected.as_json(job),
        "held": hold(job),
    }
    return _json(told)


_lines, _part_lines = Lines(_queued), Lines(_queued)  # each forgets what its last answer did not hold


def _common(job: Job) -> dict[str, Any]:
    return {"id": job.pk, "name": job.name, "user": job.user.get_username(), "workers": job.workers}


def hold(row: Holdable) -> dict[str, Any] | None:
    """Return who holds a row, since when, until when and why; None where nobody does."""
    if not row.held_by:
        return None
    return {"by": row.held_by, "since": row.held_at, "until": row.held_until, "why": row.held_why}


def _of_kind(job: Job, kind: str, name: str) -> int | None:
    """Return a figure of the job's charges of one kind of memory; 0 where it holds none, None where unknown."""
    charges = mapping(job.charges)
    return total(whole(mapping(charges[p]).get(name)) for p in charges if (p == RAM) == (kind == "ram"))


def _growth(jobs: Iterable[Job], kind: str) -> int:
    """Return what running jobs are still expected to take; what is not measured counts as not taken yet."""
    growth = 0
    for job in jobs:
        for pool, charge in mapping(job.charges).items():
            if (pool == RAM) == (kind == "ram"):
                used = whole(mapping(job.used).get(pool)) or 0
                growth += max(0, (whole(mapping(charge).get("held")) or 0) - used)
    return growth


def _attribution(pools: list[PoolNow], jobs: list[Job]) -> dict[str, Any]:
    used = total(p.used for p in pools)
    external = total(p.external for p in pools)
    per_job: dict[str, int | None] = {}
    for job in jobs:
        owner = f"job:{job.pk}"
        parts = [whole(p.owners[owner]) for p in pools if owner in mapping(p.owners)]
        per_job[str(job.pk)] = mib(total(parts))
    attributed = total(whole(amount) for p in pools for amount in mapping(p.owners).values())
    return {
        "used_total_mb": mib(used),
        "attributed_mb": mib(attributed),
        "external_mb": mib(external),
        "shared_mb": {},
        "jobs_mb": per_job,
    }
