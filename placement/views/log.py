"""A job's output: the live tail, earlier stretches, what is searched for, and the raw file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBadRequest,
    StreamingHttpResponse,
)
from django.shortcuts import render
from django.urls import reverse

from placement.domain.jobs import State
from placement.models import Job
from placement.selectors import access, job, log_lines, log_search, logs, pruned, rows
from placement.selectors.log_search import Hits
from placement.views.door import door, refused
from placement.views.panes import Pane, pane, part

BOTH = "both"
LARGEST_OFFSET = 2**62


@dataclass(frozen=True, slots=True)
class Panel:
    """All that the log's part of a page shows. ``place``: it shows a place in the log, not the end."""

    job: int
    stream: str
    panes: tuple[Pane, ...]
    live: bool
    place: bool = False
    query: str = ""
    hits: Hits | None = None
    errors: Hits | None = None
    line: int | None = None
    streams: tuple[str, ...] = field(default=(*logs.STREAMS, BOTH))

    @property
    def downloads(self) -> tuple[str, ...]:
        """Return the streams of which there is something to download."""
        return tuple(shown.stream for shown in self.panes if shown.size)

    @property
    def again(self) -> str:
        """Return where a search goes on that has not looked through all of the log; "" where it has."""
        hits = self.hits or self.errors
        if hits is None or hits.whole:
            return ""
        asked = {"stream": self.stream, "q": self.query, "of": self.query, "to": "same", "at": hits.at}
        if self.errors is not None:
            asked = {"stream": self.stream, "error": 1}
        wanted = {name: value for name, value in asked.items() if value not in (None, "")}
        return f"{reverse('job-log', args=[self.job])}?{urlencode(wanted)}"


@door()
def fragment(request: HttpRequest, job_id: int) -> HttpResponse:
    """Return the output, or a place in it; opened by itself it is a page with nothing else on it."""
    row = _readable(request, job_id)
    if isinstance(row, HttpResponse):
        return row
    try:
        shown = _asked(request, row)
    except ValueError as error:
        return _bad(str(error))
    if request.htmx:
        return _fragment(request, "placement/_log.html", {"log": shown})
    return render(request, "placement/log.html", {"log": shown, "row": row, "label": rows.label(row)})


@door(part_of="job-log")
def lines(request: HttpRequest, job_id: int) -> HttpResponse:
    """Return what came ``since``, stands ``before`` or ``after`` a place; 204 when nothing is new."""
    row = _readable(request, job_id)
    if isinstance(row, HttpResponse):
        return row
    stream = request.GET.get("stream", logs.STREAMS[0])
    prefix = f"{stream}-" if request.GET.get("prefix") else ""
    words = request.GET.get("q", "")[: log_search.LONGEST]
    try:
        if stream not in logs.STREAMS:
            raise ValueError(f"There is no stream of that name; there are {' and '.join(logs.STREAMS)}.")
        since, before, after = (_number(request, name) for name in ("since", "before", "after"))
    except ValueError as error:
        return _bad(str(error))
    over = row.state == State.FINISHED
    if since is not None:
        if not over and request.GET.get("v") == logs.version(row.run_dir, stream):
            return HttpResponse(status=204)
        found = log_lines.more(row.run_dir, stream, since)
        if found is None:  # too much came, or the log is another one: shown anew
            shown = panel(row, BOTH if prefix else stream)
            answer = _fragment(request, "placement/_log.html", {"log": shown})
            answer["HX-Retarget"], answer["HX-Reswap"] = "#log", "outerHTML"
            return answer
        made = part(pane(stream, found, live=not over, words=words, prefix=prefix))
    elif before is not None:
        found = log_lines.earlier(row.run_dir, stream, before)
        made = part(pane(stream, found, live=False, words=words, prefix=prefix), earlier=True) if found else None
    else:
        found = log_lines.later(row.run_dir, stream, after or 0)
        made = pane(stream, found, live=False, newest=False, words=words, prefix=prefix) if found else None
        made = part(made, later=True) if made else None
    return _fragment(request, "placement/_log_lines.html", {"pane": made or Pane(stream), "job": row.pk})


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
            if logs.size(row.run_dir, stream):
                return stream
    return logs.STREAMS[0]


def panel(row: Job, stream: str) -> Panel:
    """Return the end of the output, live while the job is not over."""
    over = row.state == State.FINISHED
    streams = logs.STREAMS if stream == BOTH else (stream if stream in logs.STREAMS else logs.STREAMS[0],)
    panes = []
    for name in streams:
        prefix = f"{name}-" if len(streams) > 1 else ""
        found = log_lines.tail(row.run_dir, name)
        if found is not None:
            panes.append(part(pane(name, found, live=not over, prefix=prefix), earlier=True))
        else:
            panes.append(Pane(name, since=None if over else 0, gone=pruned.output(row), prefix=prefix))
    return Panel(row.pk, BOTH if len(streams) > 1 else streams[0], tuple(panes), live=not over)


def _asked(request: HttpRequest, row: Job) -> Panel:
    """Return what the query asks for. Raise ValueError with a sentence."""
    asked = request.GET
    stream = asked.get("stream", "") or telling(row)
    if stream not in (*logs.STREAMS, BOTH):
        raise ValueError(f"There is no stream of that name; there are {', '.join((*logs.STREAMS, BOTH))}.")
    offset, line, at = (_number(request, name) for name in ("offset", "line", "at"))
    query = asked.get("q", "")[: log_search.LONGEST]
    named = logs.STREAMS if stream == BOTH else (stream,)
    if query:
        at = at if asked.get("of") == query else None
        found = [(name, log_search.find(row.run_dir, name, query, at, asked.get("to", "next"))) for name in named]
        name, hits = next(((n, h) for n, h in found if h and h.total), found[0])
        if hits is None or hits.at is None:
            return replace(panel(row, stream), query=query, hits=hits or Hits(None, 0, 0, 0, 0))
        return _place(row, name, hits.at, query=query, hits=hits)
    if asked.get("error"):
        others = (*named, *(other for other in logs.STREAMS if other not in named))
        looked = [(name, log_search.first_of_errors(row.run_dir, name)) for name in others]
        for name, hits in looked:
            if hits is not None and hits.at is not None:
                return _place(row, name, hits.at, errors=hits)
            if hits is not None and not hits.whole:
                return replace(panel(row, stream), errors=hits)
        return replace(panel(row, stream), errors=Hits(None, 0, 0, 0, 0))
    if line is not None:
        offset = log_lines.line_at(row.run_dir, named[0], line)
        if offset is None:
            return replace(panel(row, stream), line=line)
    return panel(row, stream) if offset is None else _place(row, named[0], offset, line=line)


def _place(
    row: Job,
    stream: str,
    at: int,
    *,
    query: str = "",
    hits: Hits | None = None,
    errors: Hits | None = None,
    line: int | None = None,
) -> Panel:
    found = log_lines.around(row.run_dir, stream, at)
    if found is None:
        return panel(row, stream)
    shown = pane(stream, found, live=False, newest=False, hit=at, words=query)
    return Panel(row.pk, stream, (shown,), live=False, place=True, query=query, hits=hits, errors=errors, line=line)


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name)
    if text is None or (name == "line" and not text):
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) < LARGEST_OFFSET):
        what = "line" if name == "line" else "offset"
        raise ValueError(f"The {what} must be a whole number, 0 or more.")
    return int(text)


def _fragment(request: HttpRequest, template: str, context: dict[str, object]) -> HttpResponse:
    response = render(request, template, context)
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Disposition"] = 'inline; filename="log.txt"'
    return response


def _readable(request: HttpRequest, job_id: int) -> Job | HttpResponse:
    row = job.find(job_id) if job_id < 2**63 else None
    if row is None:
        raise Http404(f"There is no job #{job_id}.")
    if not access.sees_private(request.user, row):
        return refused(request, "Only the owner of a job and operators may read its log.", 403)
    return row


def _bad(sentence: str) -> HttpResponse:
    return HttpResponseBadRequest(sentence, content_type="text/plain; charset=utf-8")
