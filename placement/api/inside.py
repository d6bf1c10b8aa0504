"""What a running job asks for, with its own token. Each call inserts, wakes, and answers what it finds: none waits."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse

from placement.api.doors import job_of
from placement.api.nouns import Noun
from placement.api.shapes.inside import (
    EndBody,
    InsideAnswer,
    InsideBody,
    InsideDone,
    InsideNotices,
    NothingBody,
    OutliveBody,
    WithdrawBody,
)
from placement.api.shapes.kinds import Id
from placement.services import holding, reserving
from placement.services.reserving import Call, Step
from placement.views import wake

noun = Noun("Inside a job", inside=True)
SAMPLE = {"key": "4f1c", "ask": {"kind": "gpu", "backend": "cuda", "group_bytes": 6000000000}}


@noun.change("/inside/requests", InsideAnswer, sample=SAMPLE)
def request(request: HttpRequest, asked: InsideBody) -> JsonResponse:
    """Ask for a place on devices of the job's node; it waits until the cycle grants it. 201 for a new one."""
    step = asked.session and Step(**asked.session.model_dump())
    sees = None if asked.sees is None else tuple(asked.sees)
    told = asked.ask.model_dump()
    row, new = reserving.ask(
        job_of(request), Call(asked.key, told, asked.process.model_dump(), step, asked.index, sees)
    )
    if new:
        wake.soon()
    return JsonResponse(reserving.answer(row), status=201 if new else 200)


@noun.read("/inside/requests/{int:request_id}", InsideAnswer)
def look(request: HttpRequest, request_id: Id) -> dict[str, Any]:
    """Return a request as it is now."""
    return reserving.answer(reserving.found(job_of(request), request_id))


@noun.change("/inside/requests/withdraw", InsideAnswer, sample={"key": "4f1c", "give_back": True})
def withdraw(request: HttpRequest, asked: WithdrawBody) -> dict[str, Any]:
    """Take a request back; what was granted before is let go only with give_back."""
    row = reserving.withdraw(job_of(request), asked.key, give_back=asked.give_back)
    wake.soon()
    return reserving.answer(row)


@noun.change("/inside/leases/{int:lease_id}/release", InsideDone, sample={})
def release(request: HttpRequest, lease_id: Id, asked: NothingBody) -> dict[str, Any]:
    """Let go of a lease."""
    reserving.release(job_of(request), lease_id)
    wake.soon()
    return {"done": True}


@noun.change("/inside/leases/{int:lease_id}/outlive", InsideDone, sample={"artifact": "index", "seconds": 3600})
def outlive(request: HttpRequest, lease_id: Id, asked: OutliveBody) -> dict[str, Any]:
    """Let an artifact hold a lease for some time after its job."""
    reserving.outlive(job_of(request), lease_id, asked.artifact, asked.seconds)
    return {"done": True}


@noun.read("/inside/notices", InsideNotices)
def notices(request: HttpRequest) -> dict[str, Any]:
    """Return which leases were taken back."""
    return {"notices": holding.notices(job_of(request))}


@noun.change("/inside/sessions/{str:key}/end", InsideDone, sample={"execution": 1, "outcome": "finished"})
def end(request: HttpRequest, key: str, asked: EndBody) -> dict[str, Any]:
    """Say that a step has ended, and how."""
    reserving.end(job_of(request), key, asked.execution, asked.outcome)
    wake.soon()
    return {"done": True}
