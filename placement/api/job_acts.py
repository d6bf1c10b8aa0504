"""What is said about a job: its place in the queue, what it taught; and what it prints."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Query

from placement.api.jobs import done, found
from placement.api.nouns import Noun
from placement.api.shapes.job import JobSaid
from placement.api.shapes.job_acts import ArgumentBody, Learned, LogAsked, LogPiece, MarkBody, PriorityBody
from placement.api.shapes.kinds import Id
from placement.domain.errors import NotFound, NotYours, UnreadableSecret
from placement.domain.jobs import State
from placement.models import Job, Role
from placement.selectors import access, learned, logs, pruned
from placement.services import priorities, secrets, taught

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
    row = _private(request, job_id, "see what it was learned under")
    return {
        "arguments": [
            {"name": a.name, "text": a.text, "hint": a.hint, "matters": a.matters} for a in learned.arguments(row)
        ],
        "taught": learned.as_json(row),
        "variables": _variables(row),
    }


@noun.read("/jobs/{int:job_id}/log", LogPiece)
def log(request: HttpRequest, job_id: Id, asked: Query[LogAsked]) -> dict[str, Any]:
    """Return the end of a log, or a stretch of it from an offset. For its owner and operators."""
    row = _private(request, job_id, "read its log")
    over = row.state == State.FINISHED
    piece = logs.read(row.run_dir, asked.stream, asked.offset, complete=over)
    return {
        "stream": asked.stream,
        "text": piece.text if piece else "",
        "start": piece.start if piece else 0,
        "end": piece.end if piece else 0,
        "size": piece.size if piece else 0,
        "over": over,
        "gone": "" if piece else pruned.output(row) or "It has written nothing yet.",
    }


@noun.read("/jobs/{int:job_id}/log/{str:stream}", None, plain=True)
def whole_log(request: HttpRequest, job_id: Id, stream: str) -> StreamingHttpResponse:
    """Send a whole log, stdout or stderr, as it was written. For its owner and operators."""
    row = _private(request, job_id, "read its log")
    there = logs.download(row.run_dir, stream)
    if there is None:
        raise NotFound(f"#{row.pk} has no log of that name; the streams are {' and '.join(logs.STREAMS)}.")
    size, blocks = there
    response = StreamingHttpResponse(blocks, content_type="text/plain; charset=utf-8")
    response["Content-Length"] = str(size)
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _private(request: HttpRequest, job_id: int, what: str) -> Job:
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
