"""Jobs by JSON: submit, ask beforehand, look, cancel."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.urls import reverse

from placement.api import body
from placement.api.shape import endpoint
from placement.domain.errors import NotFound
from placement.domain.jobs import State
from placement.models import Job, Role
from placement.selectors import access, expected, job, rows, terms
from placement.services import arrays, jobs, workloads
from placement.views import wake


@endpoint(Role.SUBMITTER, ("POST",))
def submit(request: HttpRequest) -> JsonResponse:
    """Store a submission; 201 with the job."""
    asked = _asked(request)
    made = jobs.submit(request.user, body.submission(asked), form_key=body.form_key(asked))
    wake.soon()
    response = JsonResponse({"job": one(request, made)}, status=201)
    response["Location"] = reverse("api-job", args=[made.pk])
    return response


@endpoint(Role.SUBMITTER, ("POST",))
def estimate(request: HttpRequest) -> JsonResponse:
    """Return what the gate would say of a submission right now; nothing is stored."""
    seen = jobs.preview(request.user, body.submission(_asked(request)))
    return JsonResponse(
        {
            "estimate": seen.estimate,
            "decision": seen.decision,
            "fits_now": seen.fits_now,
            "headline": seen.headline,
            "max_workers": seen.max_workers,
            "infeasible": seen.infeasible,
        }
    )


@endpoint()
def look(request: HttpRequest, job_id: int) -> JsonResponse:
    """Return one job."""
    return JsonResponse({"job": one(request, _found(job_id))})


@endpoint(Role.SUBMITTER, ("POST",))
def cancel(request: HttpRequest, job_id: int) -> JsonResponse:
    """Stop a job, or take it from the queue."""
    _found(job_id)
    said = jobs.cancel(request.user, job_id)
    wake.soon()
    return JsonResponse({"message": said, "job": one(request, _found(job_id))})


@endpoint(Role.SUBMITTER, ("POST",))
def release(request: HttpRequest, job_id: int) -> JsonResponse:
    """Let a held job start again, and the rest of its group where Tidegate held that."""
    _found(job_id)
    said = jobs.release(request.user, job_id)
    wake.soon()
    return JsonResponse({"message": said, "job": one(request, _found(job_id))})


@endpoint()
def array(request: HttpRequest, array_id: int) -> JsonResponse:
    """Return an array: how many of its members are in which state."""
    return JsonResponse({"array": _array(request, array_id)})


@endpoint(Role.SUBMITTER, ("POST",))
def cancel_array(request: HttpRequest, array_id: int) -> JsonResponse:
    """Stop all members of an array."""
    _array(request, array_id)
    said = arrays.cancel(request.user, array_id)
    wake.soon()
    return JsonResponse({"message": said, "array": _array(request, array_id)})


def _array(request: HttpRequest, array_id: int) -> dict[str, Any]:
    page = terms.array_page(request.user, array_id) if array_id < 2**63 else None
    if page is None:
        raise NotFound(f"There is no array {array_id}.")
    return {
        "id": page.id,
        "name": page.name,
        "user": page.owner,
        "size": page.size,
        "limit": page.limit,
        "made_at": page.made,
        "counts": {state.key: state.count for state in page.counts},
    }


def _asked(request: HttpRequest) -> dict[str, Any]:
    """Return the body over what its workload starts from."""
    asked = body.load(request)
    return {**workloads.defaults(asked.get("workload")), **asked}


def one(request: HttpRequest, row: Job) -> dict[str, Any]:
    """Return a job as JSON, bytes and ISO times; what is private only for owner and operators."""
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
        "basis": row.basis or None,
        "charges": row.charges,
        "used": row.used,
        "estimate": row.estimate,
        "decision": row.decision or None,
        "forecast": expected.as_json(row) if row.state == State.QUEUED else None,
        "decided_at": row.decided_at,
        "headline": row.headline,
        "code": row.code or None,
        "evidence": row.evidence,
        "leftovers": row.leftovers,
        **terms.as_json(row),
    }
    if access.sees_private(request.user, row):
        shown |= {"note": row.note, "command": row.command, "argv": row.argv, "cwd": row.cwd, "setup": row.setup}
        shown["params"] = row.params
    return shown


def _found(job_id: int) -> Job:
    row = job.find(job_id) if job_id < 2**63 else None
    if row is None:
        raise NotFound(f"There is no job #{job_id}.")
    return row
