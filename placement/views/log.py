"""A job's output: the live tail, earlier stretches, and the raw file."""

from __future__ import annotations

from typing import Any

from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    StreamingHttpResponse,
)
from django.shortcuts import render

from placement.domain.jobs import State
from placement.models import Job
from placement.selectors import access, job, logs, pruned
from placement.views import terminal
from placement.views.door import door, refused

LARGEST_OFFSET = 2**62


@door(part_of="job")
def fragment(request: HttpRequest, job_id: int) -> HttpResponse:
    """Return the tail, or the stretch from an offset; 204 when nothing is new."""
    row = _readable(request, job_id)
    if isinstance(row, HttpResponse):
        return row
    stream = request.GET.get("stream", logs.STREAMS[0])
    if stream not in logs.STREAMS:
        return _bad(f"There is no stream of that name; there are {' and '.join(logs.STREAMS)}.")
    text = request.GET.get("offset")
    offset = None
    if text is not None:
        if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) < LARGEST_OFFSET):
            return _bad("The offset must be a whole number of bytes, 0 or more.")
        offset = int(text)
    over = row.state == State.FINISHED
    if offset is None and not over and request.GET.get("v", "-") == logs.version(row.run_dir, stream):
        return HttpResponse(status=204)
    response = render(request, "placement/_log.html", {"log": panel(row, stream, offset)})
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Disposition"] = 'inline; filename="log.txt"'
    return response


@door()
def raw(request: HttpRequest, job_id: int, stream: str) -> HttpResponse | StreamingHttpResponse:
    """Send the bytes of a log as a file."""
    row = _readable(request, job_id)
    if isinstance(row, HttpResponse):
        return row
    found = logs.download(row.run_dir, stream)
    if found is None:
        raise Http404("There is no such log.")
    size, blocks = found
    response = StreamingHttpResponse(blocks, content_type="text/plain; charset=utf-8")
    response["Content-Length"] = str(size)
    response["Content-Disposition"] = f'attachment; filename="job-{row.pk}-{stream}.log"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def telling(row: Job) -> str:
    """Return the stream to show first: a run that only wrote errors has them looked at."""
    if row.state == State.FINISHED:
        for stream in logs.STREAMS:
            piece = logs.read(row.run_dir, stream)
            if piece and piece.size:
                return stream
    return logs.STREAMS[0]


def panel(row: Job, stream: str, offset: int | None = None) -> dict[str, Any]:
    """Return what the log's fragment shows."""
    stream = stream if stream in logs.STREAMS else logs.STREAMS[0]
    over = row.state == State.FINISHED
    piece = logs.read(row.run_dir, stream, offset, complete=over)
    body = terminal.markup(piece.text.removesuffix("\n")) if piece else ""
    earlier = None
    if piece and piece.start > 3:
        earlier = max(0, piece.start - logs.CHUNK)
    return {
        "job": row.pk,
        "stream": stream,
        "streams": logs.STREAMS,
        "body": body,
        "gone": "" if piece else pruned.output(row),
        "piece": piece,
        "version": piece.version if piece else "",
        "live": not over and offset is None,
        "earlier": earlier,
        "later": piece.end if piece and offset is not None and piece.end < piece.size else None,
        "tail": offset is None,
    }


def _readable(request: HttpRequest, job_id: int) -> Job | HttpResponse:
    row = job.find(job_id) if job_id < 2**63 else None
    if row is None:
        raise Http404(f"There is no job #{job_id}.")
    if not access.sees_private(request.user, row):
        return refused(request, "Only the owner of a job and operators may read its log.", 403)
    return row


def _bad(sentence: str) -> HttpResponse:
    return HttpResponseBadRequest(sentence, content_type="text/plain; charset=utf-8")
