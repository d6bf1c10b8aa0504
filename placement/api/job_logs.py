"""What a job prints, for its owner and operators; and what it held of memory, for everybody."""

from __future__ import annotations

import codecs
from typing import Any

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Query

from placement.api.job_acts import private
from placement.api.jobs import found
from placement.api.nouns import Noun
from placement.api.shapes.kinds import Id
from placement.api.shapes.log import Hit, LogAsked, LogPiece, Memory, MemoryAsked, SearchAsked, StreamAsked
from placement.domain.errors import NotFound
from placement.domain.jobs import State
from placement.models import Job
from placement.selectors import held, log_lines, log_search, logs, pruned

noun = Noun("Jobs")


@noun.read("/jobs/{int:job_id}/log", LogPiece)
def log(request: HttpRequest, job_id: Id, asked: Query[LogAsked]) -> dict[str, Any]:
    """Return the end of a log, or a stretch of it from an offset. For its owner and operators."""
    row = private(request, job_id, "read its log")
    over = row.state == State.FINISHED
    if asked.offset is None:
        found_ = log_lines.tail(row.run_dir, asked.stream)
    else:
        found_ = log_lines.later(row.run_dir, asked.stream, asked.offset)
    if found_ is None:
        nothing = {"text": "", "start": 0, "end": 0, "size": 0, "line": None, "gone": _gone(row)}
        return {"stream": asked.stream, "over": over, **nothing}
    raw = b"\n".join(line for _, line in found_.lines) + (b"\n" if found_.lines and not found_.open else b"")
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(raw, final=over or found_.end < found_.size)
    return {
        "stream": asked.stream,
        "text": text,
        "start": found_.start,
        "end": found_.end - len(decoder.getstate()[0]),  # a character that is not all there yet comes next time
        "size": found_.size,
        "line": found_.number,
        "over": over,
        "gone": "",
    }


@noun.read("/jobs/{int:job_id}/log/search", Hit)
def search(request: HttpRequest, job_id: Id, asked: Query[SearchAsked]) -> dict[str, Any]:
    """Look for words in a log, or for its first error. For its owner and operators."""
    row = private(request, job_id, "read its log")
    if asked.q:
        hits = log_search.find(row.run_dir, asked.stream, asked.q, asked.at, asked.to)
    else:
        hits = log_search.first_of_errors(row.run_dir, asked.stream)
    if hits is None:
        raise NotFound(_gone(row))
    return {
        "at": hits.at,
        "number": hits.number,
        "total": hits.total,
        "searched": hits.searched,
        "size": hits.size,
        "kind": hits.kind,
    }


@noun.read("/jobs/{int:job_id}/log.txt", None, plain=True)
def whole_log(request: HttpRequest, job_id: Id, asked: Query[StreamAsked]) -> StreamingHttpResponse:
    """Send a whole log as it was written. For its owner and operators."""
    row = private(request, job_id, "read its log")
    there = logs.download(row.run_dir, asked.stream)
    if there is None:
        raise NotFound(_gone(row))
    size, blocks = there
    response = StreamingHttpResponse(blocks, content_type="text/plain; charset=utf-8")
    response["Content-Length"] = str(size)
    response["X-Content-Type-Options"] = "nosniff"
    return response


@noun.read("/jobs/{int:job_id}/memory", Memory)
def memory(request: HttpRequest, job_id: Id, asked: Query[MemoryAsked]) -> dict[str, Any]:
    """Return what a job held of its device or of RAM over time."""
    drawn = held.drawn(found(job_id), "ram" if asked.kind == "ram" else f"device-{asked.number}")
    if drawn is None:
        return {"step": 1, "at": [], "amounts": [], "levels": {}}
    trace = drawn.trace
    return {
        "step": trace.step,
        "at": list(trace.at),
        "amounts": list(trace.amounts),
        "levels": dict(drawn.levels),
    }


def _gone(row: Job) -> str:
    return pruned.output(row) or f"#{row.pk} has written nothing yet."
