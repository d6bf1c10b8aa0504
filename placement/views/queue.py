"""The queue: tanks, waiting, running, finished; live."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from placement.models import Role
from placement.selectors import access, kept, queue
from placement.services import accounts, nodes
from placement.views import wake
from placement.views.door import done, door


@dataclass
class Shown:
    """One reading of the queue, and its live part as each viewer sees it: who may submit, whose jobs are "yours"."""

    page: queue.QueuePage
    version: str
    live: dict[tuple[bool, str], str] = field(default_factory=dict)


_kept: kept.Kept[Shown] = kept.Kept()


@door()
def page(request: HttpRequest) -> HttpResponse:
    """Show the queue with all that is committed."""
    shown = _shown(request)
    context = {"page": shown.page, "live": _live(request, shown), "operator": _operates(request)}
    return render(request, "placement/queue.html", context)


@door(part_of="queue")
def fragment(request: HttpRequest) -> HttpResponse:
    """Return the live part, or 204 when the page shows it already."""
    shown = _shown(request, anyhow=kept.POLLED)
    if request.GET.get("v") == shown.version:
        return HttpResponse(status=204)
    return HttpResponse(_live(request, shown))


@door(Role.OPERATOR, ("POST",))
def hold(request: HttpRequest) -> HttpResponse:
    """Let nothing start until released."""
    why = request.POST.get("why", "")

    def act() -> None:
        nodes.hold(request.user, "queue", 1, why=why)
        wake.soon()

    return done(request, "queue", act, "The queue is held: what runs goes on, nothing starts.")


@door(Role.OPERATOR, ("POST",))
def release(request: HttpRequest) -> HttpResponse:
    """Let jobs start again."""

    def act() -> None:
        nodes.release(request.user, "queue", 1)
        wake.soon()

    return done(request, "queue", act, "The queue is released.")


def _operates(request: HttpRequest) -> bool:
    return access.at_least(request.user, Role.OPERATOR)


def _shown(request: HttpRequest, anyhow: float = 0.0) -> Shown:
    operates = _operates(request)

    def read() -> Shown:
        page = queue.page(sees_commands=operates, notice=accounts.trust_notice())
        return Shown(page, page.version)

    return _kept.get(operates, read, anyhow=anyhow)


def _live(request: HttpRequest, shown: Shown) -> str:
    submits = access.at_least(request.user, Role.SUBMITTER)
    viewer = (submits, request.user.get_username())
    if viewer not in shown.live:
        context = {"page": shown.page, "version": shown.version, "submitter": submits}
        shown.live[viewer] = render_to_string("placement/_queue.html", context, request)
    return shown.live[viewer]
