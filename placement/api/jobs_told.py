"""A job as the API tells it: bytes and ISO times; what is private only for owner and operators."""

from __future__ import annotations

from typing import Any

from placement.domain.jobs import State
from placement.models import Job
from placement.selectors import access, expected, held, progress, raised, rows, terms


def one(user: Any, row: Job) -> dict[str, Any]:
    """Return a job as this user may see it."""
    offer = raised.of(row)
    shown = {
        "id": row.pk,
        "name": row.name,
        "user": row.user.get_username(),
        "workload": row.workload.name if row.workload else None,
        "state": row.state,
        "outcome": row.outcome or None,
        "sentence": row.sentence,
        "flags": list(rows.words(row)),
        "workers": row.workers,
        "gpu": row.gpu,
        **group(row),
        "exclusive": row.exclusive,
        "priority": row.priority,
        "time_limit_s": row.time_limit_s,
        "declared_ram": row.declared_ram,
        "declared_vram": row.declared_vram,
        "attempt": row.attempt,
        "retry_of": row.retry_of_id,
        "submitted_at": row.submitted_at,
        "admitted_at": row.admitted_at,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "duration_s": row.duration_s,
        "exit_code": row.exit_code,
        "exit_signal": row.exit_signal,
        "node": row.node or None,
        "device": row.device or None,
        "devices": list(row.devices),
        "basis": row.basis or None,
        "charges": row.charges,
        "used": row.used,
        "peak": held.peaks_of(row) if row.state == State.FINISHED else None,
        "estimate": row.estimate,
        "decision": row.decision or None,
        "forecast": expected.as_json(row) if row.state == State.QUEUED else None,
        "progress": progress.as_json(row),
        "decided_at": row.decided_at,
        "headline": row.headline,
        "code": row.code or None,
        "evidence": row.evidence,
        "raised": dict(offer.fields) if offer else None,
        "leftovers": row.leftovers,
        **terms.as_json(row),
    }
    if access.sees_private(user, row):
        shown |= {"note": row.note, "command": row.command, "argv": row.argv, "cwd": row.cwd, "setup": row.setup}
        shown |= {"params": row.params, "image": row.image or None, "engine": row.engine or None}
    return shown


def group(row: Job) -> dict[str, Any]:
    """Return how many devices of which sort a job asks for, and the bytes that it reserves exactly."""
    asked = row.request()
    return {
        "min_devices": asked.min_devices,
        "max_devices": asked.max_devices,
        "prefer_max": asked.prefer_max,
        "memory": "exact" if asked.exact else "auto",
        "per_device_memory": asked.per_device_memory,
        "group_memory": asked.group_memory,
        "even": asked.even,
        "device_kind": asked.kind.lower() if asked.kind else None,
        "backend": asked.backend.lower() if asked.backend else None,
    }
