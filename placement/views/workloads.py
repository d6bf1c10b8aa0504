"""Workloads: what was learned of each, what its next run would be charged, and what operators say about it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone

from calibration.domain import keys
from calibration.models import Sediment
from placement.charts import workload as charts
from placement.domain.errors import Refused
from placement.models import Job, Role
from placement.selectors import access, learned, subjects, workload_page, workloads
from placement.selectors.subjects import Subject
from placement.selectors.workload_page import MOST_WORKERS, Learned
from placement.selectors.workload_runs import KINDS
from placement.services import later, taught
from placement.views import wake
from placement.views.door import done, door

MOST_PAGES = 100_000
FIGURES = ("need", "time", "durations", "spread")
MARKS = {
    "atypical": {"atypical": True},
    "forget": {"forgotten": True},
    "count": {"atypical": False, "forgotten": False},
}


@door()
def index(request: HttpRequest) -> HttpResponse:
    """Show all that was learned or defined."""
    asked = {
        "q": request.GET.get("q", "").strip().replace("\0", "")[:200],
        "which": _one_of(request.GET.get("which"), workloads.WHICH, "all"),
        "order": _one_of(request.GET.get("order"), workloads.ORDERS, "recent"),
    }
    number = max(1, min(MOST_PAGES, _number(request.GET.get("page"), 1)))
    found = workloads.page(request.user, text=asked["q"], which=asked["which"], order=asked["order"], number=number)
    context = {
        **asked,
        "found": found,
        "orders": workloads.ORDERS.items(),
        "whiches": workloads.WHICH.items(),
        "newer": f"?{urlencode({**asked, 'page': number - 1})}" if number > 1 else "",
        "older": f"?{urlencode({**asked, 'page': number + 1})}" if found.more else "",
        "operates": access.at_least(request.user, Role.OPERATOR),
    }
    return render(request, "placement/workloads.html", context)


@door()
def page(request: HttpRequest, ident: str) -> HttpResponse:
    """Show one workload or script."""
    subject, found = _found(request, ident)
    kind = _kind(request, found)
    before = _number(request.GET.get("before"), 0) or None
    sees = subjects.sees_typed(request.user, subject)
    link = {"key": found.digest, "kind": kind}
    table = workload_page.table(found, kind, before)
    context = {
        "subject": subject,
        "title": subjects.called(request.user, subject, found.params),
        "found": found,
        "kind": kind,
        "kinds": [(k, KINDS[k]) for k in found.kinds],
        "keys": workload_page.keys(request.user, subject),
        "charge": workload_page.charge(found, found.workers),
        "facts": workload_page.facts(found, kind),
        "table": table,
        "older": f"?{urlencode({**link, 'before': table.older})}#runs" if table.older else "",
        "later": workload_page.later(subject),
        "pins": workload_page.pins(subject, found.kinds),
        "figures": {which: _figure_url(subject, which, link) for which in FIGURES},
        "sees": sees,
        "params": subjects.told(subject, found.params) if sees else "",
        "arguments": learned.arguments(job) if sees and (job := _last_job(found)) else (),
        "record": workload_page.record(subject) if access.at_least(request.user, Role.OPERATOR) else (),
        "operates": access.at_least(request.user, Role.OPERATOR),
        "submits": access.at_least(request.user, Role.SUBMITTER),
    }
    return render(request, "placement/workload_page.html", context)


@door()
def named(request: HttpRequest) -> HttpResponse:
    """Go to the page of the workload of this name."""
    return redirect("workload", keys.named(request.GET.get("name", "")[:100]))


@door(part_of="workload")
def charge(request: HttpRequest, ident: str) -> HttpResponse:
    """Return what a run with so many workers would be charged, with the whole ladder."""
    subject, found = _found(request, ident)
    workers = max(1, min(MOST_WORKERS, _number(request.GET.get("workers"), found.workers)))
    context = {"subject": subject, "found": found, "charge": workload_page.charge(found, workers)}
    return render(request, "placement/_workload_charge.html", context)


@door()
def figure(request: HttpRequest, ident: str, which: str) -> HttpResponse:
    """Return one chart of a set of parameters as JSON."""
    if which not in FIGURES:
        raise Http404("There is no such figure.")
    _, found = _found(request, ident)
    kind = _kind(request, found)
    told = found.standings(kind)
    if which == "need":
        return JsonResponse(charts.need(found.runs, told, kind, workload_page.curve(found, kind)))
    if which == "time":
        pool = found.estimate(found.workers).pools.get(kind)
        return JsonResponse(charts.over_time(found.runs, told, kind, pool.need if pool else None))
    if which == "durations":
        return JsonResponse(charts.durations(found.runs, told))
    return JsonResponse(charts.spread(found.runs, told, kind))


@door(Role.OPERATOR, ("POST",))
def mark(request: HttpRequest, ident: str) -> HttpResponse:
    """Leave a run out of estimates, or let it count again."""
    subject, found = _found(request, ident)
    changes = MARKS.get(request.POST.get("what", ""))
    row = Sediment.objects.filter(pk=_number(request.POST.get("run"), 0), workload=subject.workload).first()
    if changes is None or row is None:
        raise Http404("There is no such run or mark.")
    return _change(request, subject, found, lambda: taught.row_of(request.user, row, **changes), "#runs")


@door(Role.OPERATOR, ("POST",))
def forget(request: HttpRequest, ident: str) -> HttpResponse:
    """Forget what ended before a day (its first moment, UTC), or more than some days ago."""
    subject, found = _found(request, ident)

    def act() -> str:
        days = request.POST.get("days", "").strip()
        if not (days.isascii() and days.isdecimal() and len(days) < 6):
            raise Refused("Say in whole days how old a run must be to be forgotten; 0 forgets all of them.")
        before = timezone.now() - timedelta(days=int(days))
        return taught.forget_before(
            request.user, subject.workload, found.params, max(before, datetime(1970, 1, 2, tzinfo=UTC))
        )

    return _change(request, subject, found, act, "#runs")


@door(Role.OPERATOR, ("POST",))
def forget_later(request: HttpRequest, ident: str) -> HttpResponse:
    """Forget what its runs ask for while they run."""
    subject, found = _found(request, ident)
    return _change(request, subject, found, lambda: later.forget(request.user, subject.workload, subject.id), "#later")


@door(Role.OPERATOR, ("POST",))
def pin(request: HttpRequest, ident: str) -> HttpResponse:
    """Pin what a run is charged, or let it be learned again."""
    subject, found = _found(request, ident)
    kind, amount = request.POST.get("pin_kind", ""), request.POST.get("amount", "").strip()
    everywhere = request.POST.get("whole") == "1"
    off = request.POST.get("off") == "1"

    def act() -> str:
        if not off and not amount:
            raise Refused("Say how much, such as 12 GiB.")
        only = "" if everywhere else subject.id
        return taught.pin(request.user, subject.workload, kind, None if off else amount, only)

    return _change(request, subject, found, act)


@door(Role.SUBMITTER, ("POST",))
def argument(request: HttpRequest, ident: str) -> HttpResponse:
    """Say whether an argument of what is typed matters to its memory."""
    subject, found = _found(request, ident)
    name, matters = request.POST.get("name", ""), request.POST.get("matters") == "1"
    job = _last_job(found)
    if job is None:
        raise Http404("None of its runs was a job.")
    return _change(request, subject, found, lambda: taught.argument(request.user, job.pk, name, matters), "#arguments")


def found_subject(ident: str) -> Subject:
    """Return the subject of this id or end with 404."""
    subject = subjects.find(ident) if len(ident) == 32 else None
    if subject is None:
        raise Http404("Nothing was learned or defined under this address.")
    return subject


def _found(request: HttpRequest, ident: str) -> tuple[Subject, Learned]:
    subject = found_subject(ident)
    source = request.POST if request.method == "POST" else request.GET
    found = workload_page.learned(subject, source.get("key", ""))
    if found is None:
        raise Http404("It was never run with these parameters.")
    return subject, found


def _kind(request: HttpRequest, found: Learned) -> str:
    source = request.POST if request.method == "POST" else request.GET
    return _one_of(source.get("kind"), found.kinds, found.kinds[0])


def _last_job(found: Learned) -> Job | None:
    number = next((run.job for run in found.runs if run.job is not None), None)
    return Job.objects.select_related("user").filter(pk=number).first() if number is not None else None


def _change(
    request: HttpRequest, subject: Subject, found: Learned, act: Callable[[], str], part: str = ""
) -> HttpResponse:
    def and_wake() -> str:
        said = act()
        wake.soon()
        return said

    link = urlencode({"key": found.digest, "kind": _kind(request, found)})
    return done(request, f"{reverse('workload', args=[subject.id])}?{link}{part}", and_wake)


def _figure_url(subject: Subject, which: str, link: dict[str, str]) -> str:
    return f"{reverse('workload-figure', args=[subject.id, which])}?{urlencode(link)}"


def _one_of(value: str | None, known: Any, usual: str) -> str:
    return value if value is not None and value in known else usual


def _number(text: str | None, usual: int) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else usual
