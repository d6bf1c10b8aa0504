"""One job: what is with it, why, what it stands on, and what may be done."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django_htmx.http import HttpResponseStopPolling

from placement.charts import job as chart
from placement.domain.errors import Refused, UnreadableSecret
from placement.models import Job, Role
from placement.selectors import access, devices, held, job, kept, learned, remedy, tanks
from placement.selectors.queue import digest
from placement.services import accounts, editing, jobs, priorities, revoking, secrets, taught
from placement.views import wake
from placement.views.door import done, door
from placement.views.log import panel, telling


@door()
def page(request: HttpRequest, job_id: int) -> HttpResponse:
    """Show a job."""
    row = found(job_id)
    context: dict[str, Any] = _context(request, row)
    context["private"] = job.private(request.user, row)
    if context["private"]:
        context["variables"] = _variables(row)
        context["arguments"] = learned.arguments(row)
        context["taught"] = learned.taught(row)
        context["operates"] = access.at_least(request.user, Role.OPERATOR)
        context["log"] = panel(row, request.GET.get("stream") or telling(row))
    return render(request, "placement/job.html", context)


@door(part_of="job")
def fragment(request: HttpRequest, job_id: int) -> HttpResponse:
    """Return the live part, 204 when the page shows it already; a finished job is the last answer."""
    context = _context(request, found(job_id), remedy.POLLED if kept.POLLED else 0.0)
    context["redrawn"] = request.GET.get("charts", context["drawn"]) != context["drawn"]
    if request.GET.get("v") == context["version"] and not context["page"].finished and not context["redrawn"]:
        return HttpResponse(status=204)
    response = render(request, "placement/_job.html", context)
    return HttpResponseStopPolling(response.content) if context["page"].finished else response


@door()
def memory(request: HttpRequest, job_id: int, kind: str) -> HttpResponse:
    """Return the figure of what the job used of its device or of RAM, 204 where it is drawn already."""
    if not re.fullmatch(r"ram|device(-[0-9]{1,2})?", kind):
        raise Http404(f"There is no memory of the kind {kind}.")
    drawn = held.drawn(found(job_id), kind)
    if drawn is None:
        return JsonResponse(chart.nothing())
    last = drawn.trace.at[-1] if drawn.trace.at else 0
    version = f"{last}-{digest((drawn.pool, *drawn.levels.values()))}"
    if request.GET.get("v") == version:
        return HttpResponse(status=204)
    return JsonResponse(chart.memory(drawn.trace, tanks.tone(job_id), drawn.levels, drawn.start, drawn.end, version))


@door(Role.SUBMITTER, ("POST",))
def change(request: HttpRequest, job_id: int) -> HttpResponse:
    """Let a waiting job ask for less, so that it starts where it could not."""

    def act() -> str:
        names = ("workers", "declared_ram", "declared_vram", "time_limit_s", "devices")
        names = (*names, "per_device_memory", "group_memory")
        amounts = {name: number(request.POST[name]) for name in names if name in request.POST}
        flags = {name: request.POST.get(name) == "1" for name in ("beside", "anywhere")}
        return editing.change(request.user, job_id, editing.Wanted(**amounts, **flags))

    return _change(request, job_id, act)


@door(Role.SUBMITTER, ("POST",))
def priority(request: HttpRequest, job_id: int) -> HttpResponse:
    """Give a waiting job another place in the queue."""
    value = request.POST.get("priority", "")
    return _change(request, job_id, lambda: priorities.change(request.user, job_id, number(value, "priority")))


@door(Role.SUBMITTER, ("POST",))
def cancel(request: HttpRequest, job_id: int) -> HttpResponse:
    """Stop a job, or take it from the queue."""
    return _change(request, job_id, lambda: jobs.cancel(request.user, job_id))


@door(Role.SUBMITTER, ("POST",))
def retry(request: HttpRequest, job_id: int) -> HttpResponse:
    """Submit a finished job again, with at least so many bytes of a kind as the form says."""
    try:
        more = {kind: number(request.POST[kind], "size") for kind in ("ram", "vram") if kind in request.POST}
        key = request.POST.get("form_key", "")
        again = jobs.retry(request.user, job_id, more, form_key=key if len(key) <= 64 and key.isprintable() else None)
    except Refused as error:
        return _change(request, job_id, _raising(error))
    wake.soon()
    return done(request, f"/jobs/{again.pk}", lambda: f"#{again.pk} repeats #{job_id}.")


@door(Role.SUBMITTER, ("POST",))
def hold(request: HttpRequest, job_id: int) -> HttpResponse:
    """Keep a waiting job from starting."""
    why = request.POST.get("why", "")[:200]
    return _change(request, job_id, lambda: jobs.hold(request.user, job_id, why), f"#{job_id} is held.")


@door(Role.SUBMITTER, ("POST",))
def release(request: HttpRequest, job_id: int) -> HttpResponse:
    """Let a held job start again."""
    return _change(request, job_id, lambda: jobs.release(request.user, job_id))


@door(Role.OPERATOR, ("POST",))
def revoke(request: HttpRequest, job_id: int, request_id: int) -> HttpResponse:
    """Take back what a job was granted while it ran."""
    return _change(request, job_id, lambda: revoking.revoke(request.user, job_id, request_id))


@door(Role.SUBMITTER, ("POST",))
def argument(request: HttpRequest, job_id: int) -> HttpResponse:
    """Mark an argument as one that does not matter to memory, or take that back."""
    name, matters = request.POST.get("name", ""), request.POST.get("matters") == "1"
    return _change(request, job_id, lambda: taught.argument(request.user, job_id, name, matters))


@door(Role.OPERATOR, ("POST",))
def mark(request: HttpRequest, job_id: int) -> HttpResponse:
    """Leave what a run taught out of estimates, or take that back."""
    what = request.POST.get("what", "")
    changes = {
        "atypical": {"atypical": True},
        "forget": {"forgotten": True},
        "count": {"atypical": False, "forgotten": False},
    }.get(what)
    if changes is None:
        raise Http404("There is no such mark.")
    return _change(request, job_id, lambda: taught.run(request.user, job_id, **changes))


@door()
def at(request: HttpRequest) -> HttpResponse:
    """Go to the job whose number was typed."""
    text = request.GET.get("id", "").strip().lstrip("#")
    if not text.isascii() or not text.isdecimal() or len(text) > 12:
        raise Http404("There is no such job number.")
    return redirect("job", int(text))


def found(job_id: int) -> Job:
    """Return the job or end with 404."""
    row = job.find(job_id) if job_id < 2**63 else None
    if row is None:
        raise Http404(f"There is no job #{job_id}.")
    return row


def number(text: str, what: str = "figure") -> int:
    """Return a whole number from a form; Refused where it is none, which only a form of ours gone wrong sends."""
    digits = text.strip().removeprefix("-").removeprefix("+")
    if not digits.isascii() or not digits.isdecimal() or len(digits) > 18:
        raise Refused(f"{text[:40]!r} is no {what}: give a whole number.")
    return int(text)


def _change(request: HttpRequest, job_id: int, act: Callable[[], Any], said: str = "") -> HttpResponse:
    def and_wake() -> Any:
        answer = act()
        wake.soon()
        return answer

    return done(request, f"/jobs/{job_id}", and_wake, said)


def _raising(error: Exception) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


def _context(request: HttpRequest, row: Job, anyhow: float = 0.0) -> dict[str, Any]:
    shown = job.page(request.user, row, accounts.problem, anyhow)
    charts = held.kinds(row, devices.named())
    return {
        "page": shown,
        "version": shown.version,
        "sees_log": access.sees_private(request.user, row),
        "charts": charts,
        "drawn": ",".join(kind for kind, _ in charts),
    }


def _variables(row: Job) -> list[str]:
    """Return the names of the submission's own variables; values are shown to nobody."""
    if not row.environment:
        return []
    try:
        return sorted(secrets.unseal(bytes(row.environment)))
    except UnreadableSecret:
        return ["(cannot be opened with the key at hand)"]
