"""What is said about a job: its place in the queue, what it asks for, and what it taught."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from placement.api.jobs import done, found
from placement.api.nouns import Noun
from placement.api.shapes.job import JobSaid
from placement.api.shapes.job_acts import ArgumentBody, ChangeBody, Learned, MarkBody, PriorityBody
from placement.api.shapes.kinds import Id
from placement.domain.errors import NotYours, UnreadableSecret
from placement.models import Job, Role
from placement.selectors import access, learned
from placement.services import editing, priorities, secrets, taught

noun = Noun("Jobs")
MARKS = {
    "atypical": {"atypical": True},
    "forget": {"forgotten": True},
    "count": {"atypical": False, "forgotten": False},
}


@noun.change("/jobs/{int:job_id}/priority", JobSaid, sample={"priority": -5})
def priority(request: HttpRequest, job_id: Id, asked: PriorityBody) -> dict[str, Any]:
    """Change where a waiting job stands in the queue."""
    found(job_id)
    return done(request, job_id, priorities.change(request.user, job_id, asked.priority))


@noun.change("/jobs/{int:job_id}/mark", JobSaid, Role.OPERATOR, sample={"what": "atypical"})
def mark(request: HttpRequest, job_id: Id, asked: MarkBody) -> dict[str, Any]:
    """Leave what a run taught out of estimates, or take that back."""
    found(job_id)
    return done(request, job_id, taught.run(request.user, job_id, **MARKS[asked.what]))


@noun.change("/jobs/{int:job_id}/argument", JobSaid, sample={"name": "--seed", "matters": False})
def argument(request: HttpRequest, job_id: Id, asked: ArgumentBody) -> dict[str, Any]:
    """Say whether an argument of a typed command matters to memory, from now on."""
    found(job_id)
    return done(request, job_id, taught.argument(request.user, job_id, asked.name, asked.matters))


@noun.read("/jobs/{int:job_id}/learned", Learned)
def taught_by(request: HttpRequest, job_id: Id) -> dict[str, Any]:
    """Return what a run is learned under and what it taught. For its owner and operators."""
    row = private(request, job_id, "see what it was learned under")
    return {
        "arguments": [
            {"name": a.name, "text": a.text, "hint": a.hint, "matters": a.matters} for a in learned.arguments(row)
        ],
        "taught": learned.as_json(row),
        "variables": _variables(row),
    }


@noun.change("/jobs/{int:job_id}/change", JobSaid, sample={"workers": 4, "anywhere": True})
def change(request: HttpRequest, job_id: Id, asked: ChangeBody) -> dict[str, Any]:
    """Let a waiting job ask for less, so that it starts where it could not."""
    found(job_id)
    wanted = editing.Wanted(
        workers=asked.workers,
        declared_ram=asked.declared_ram,
        declared_vram=asked.declared_vram,
        time_limit_s=asked.time_limit_s,
        devices=asked.devices,
        per_device_memory=asked.per_device_memory,
        group_memory=asked.group_memory,
        beside=asked.beside,
        anywhere=asked.anywhere,
    )
    return done(request, job_id, editing.change(request.user, job_id, wanted))


def private(request: HttpRequest, job_id: int, what: str) -> Job:
    """Return a job whose private parts this user may see. Raise NotYours."""
    row = found(job_id)
    if not access.sees_private(request.user, row):
        raise NotYours(f"Only the owner of a job and operators may {what}.")
    return row


def _variables(row: Job) -> list[str]:
    if not row.environment:
        return []
    try:
        return sorted(secrets.unseal(bytes(row.environment)))
    except UnreadableSecret:
        return []
