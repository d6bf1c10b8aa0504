"""Jobs: submit, ask beforehand, look, and what may be done with one."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse

from placement.api import jobs_told
from placement.api.nouns import Noun
from placement.api.shapes.job import History, JobAnswer, JobSaid
from placement.api.shapes.job_acts import RetryBody
from placement.api.shapes.judgement import Preview
from placement.api.shapes.kinds import Id
from placement.api.shapes.queue import WhyBody
from placement.api.shapes.submission import SubmissionBody
from placement.domain.errors import NotFound, Refused
from placement.models import Job
from placement.selectors import answer, devices, job, pruned, raised
from placement.services import jobs, sweeps, workloads
from placement.views import wake

noun = Noun("Jobs")
HISTORY = 200
SAMPLE = {"command": "python train.py --batch 64", "gpu": "one", "declared_vram": "8 GiB", "time_limit_s": 3600}


@noun.change("/jobs", JobAnswer, status=201, name="api-submit", sample=SAMPLE)
def submit(request: HttpRequest, asked: SubmissionBody) -> HttpResponse:
    """Submit a run.

    Left out, gpu is none (the page guesses it from the command, the API does not). With a workload, its own gpu,
    exclusive, workers, cwd and name stand where the submission says nothing. Of an array the first member is answered.
    """
    made = sweeps.submit(request.user, asked.submission(workloads.defaults(asked.workload)), form_key=asked.form_key)
    wake.soon()
    response = JsonResponse({"job": jobs_told.one(request.user, made)}, status=201)
    response["Location"] = reverse("api-job", args=[made.pk])
    return response


@noun.change("/estimate", Preview, name="api-estimate", sample=SAMPLE)
def estimate(request: HttpRequest, asked: SubmissionBody) -> dict[str, Any]:
    """Say what the gate would say of a submission now; nothing is stored."""
    wanted = asked.submission(workloads.defaults(asked.workload))
    sweep = sweeps.preview(request.user, wanted) if wanted.sweep else None
    seen = sweep.first if sweep else jobs.preview(request.user, wanted)
    return {
        "estimate": seen.estimate,
        "decision": seen.decision,
        "fits_now": seen.fits_now,
        "headline": seen.headline,
        "answer": answer.of(seen, devices.named(), devices.unread()),
        "max_workers": seen.max_workers,
        "infeasible": seen.infeasible,
        "sweep": None if sweep is None else _sweep(sweep),
    }


@noun.read("/jobs/{int:job_id}", JobAnswer, name="api-job")
def look(request: HttpRequest, job_id: Id) -> dict[str, Any]:
    """Return one job."""
    return {"job": jobs_told.one(request.user, found(job_id))}


@noun.read("/jobs/{int:job_id}/history", History)
def history(request: HttpRequest, job_id: Id) -> dict[str, Any]:
    """Return what the gate said of a job, newest first."""
    row = found(job_id)
    past = row.history.order_by("-at").values("at", "verdict", "code", "headline")[:HISTORY]
    return {"verdicts": list(past), "pruned": pruned.history(row)}


@noun.change("/jobs/{int:job_id}/cancel", JobSaid, name="api-cancel")
def cancel(request: HttpRequest, job_id: Id) -> dict[str, Any]:
    """Stop a job, or take it from the queue."""
    found(job_id)
    return done(request, job_id, jobs.cancel(request.user, job_id))


@noun.change("/jobs/{int:job_id}/retry", JobSaid, status=201, sample={"declared_vram": "12.3 GiB"})
def retry(request: HttpRequest, job_id: Id, asked: RetryBody = RetryBody()) -> dict[str, Any]:  # noqa: B008
    """Submit an ended job again, as a new one; the answer is the new one.

    With `raised` it asks for what the page offers after a death of memory ("Retry with 12.3 GiB").
    """
    row, more = found(job_id), asked.at_least()
    if asked.raised:
        offer = raised.of(row)
        if offer is None:
            raise Refused(
                f"Nothing larger is offered for #{job_id}: a larger charge helps after a death of memory that was "
                "its own doing. Leave raised out to run it as it was, or send declared_ram or declared_vram."
            )
        more = {kind: max(more.get(kind, 0), amount) for kind, amount in {**more, **dict(offer.fields)}.items()}
    again = jobs.retry(request.user, job_id, more, form_key=asked.form_key)
    return done(request, again.pk, f"#{again.pk} repeats #{job_id}.")


@noun.change("/jobs/{int:job_id}/hold", JobSaid, sample={"why": "the data is not complete yet"})
def hold(request: HttpRequest, job_id: Id, asked: WhyBody) -> dict[str, Any]:
    """Keep a waiting job from starting until it is released."""
    found(job_id)
    jobs.hold(request.user, job_id, asked.why)
    return done(request, job_id, f"#{job_id} is held.")


@noun.change("/jobs/{int:job_id}/release", JobSaid, name="api-release")
def release(request: HttpRequest, job_id: Id) -> dict[str, Any]:
    """Let a held job start again; where Tidegate held its group, the whole group."""
    found(job_id)
    return done(request, job_id, jobs.release(request.user, job_id))


def _sweep(seen: sweeps.SweepPreview) -> dict[str, Any]:
    return {
        "count": seen.count,
        "first": [{"values": values, "command": command} for values, command in seen.members],
        "needs": [{"kind": need.kind, "least": need.least, "most": need.most} for need in seen.needs],
        "at_once": seen.at_once,
        "seconds": seen.seconds,
    }


def found(job_id: int) -> Job:
    """Return the job or raise NotFound."""
    row = job.find(job_id) if job_id < 2**63 else None
    if row is None:
        raise NotFound(f"There is no job #{job_id}.")
    return row


def done(request: HttpRequest, job_id: int, said: str) -> dict[str, Any]:
    """Return what was said and the job after it; and wake the gate."""
    wake.soon()
    return {"message": said, "job": jobs_told.one(request.user, found(job_id))}
