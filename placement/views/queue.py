"""The queue: tanks, waiting, running, finished; live."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from placement.models import Role
from placement.selectors import access, queue
from placement.services import accounts, nodes
from placement.views import wake
from placement.views.door import done, door
from placement.views.shared import Shared

_polled: Shared[tuple[queue.QueuePage, str]] = Shared()


@door()
def page(request: HttpRequest) -> HttpResponse:
    """Show the queue."""
    return render(request, "placement/queue.html", _context(request, _read(_operates(request))))


@door()
def fragment(request: HttpRequest) -> HttpResponse:
    """Return the live part, or 204 when the page shows it already."""
    operates = _operates(request)
    shown = _polled.get(operates, lambda: _read(operates))
    if request.GET.get("v") == shown[1]:
        return HttpResponse(status=204)
    return render(request, "placement/_queue.html", _context(request, shown))


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


def _read(operates: bool) -> tuple[queue.QueuePage, str]:
    page = queue.page(sees_commands=operates, notice=accounts.trust_notice())
    return page, page.version


def _context(request: HttpRequest, shown: tuple[queue.QueuePage, str]) -> dict[str, object]:
    return {
        "page": shown[0],
        "version": shown[1],
        "operator": _operates(request),
        "submitter": access.at_least(request.user, Role.SUBMITTER),
    }
