"""The queue: tanks, waiting, running, finished; live."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from placement.models import Role
from placement.selectors import access, queue
from placement.services import accounts, nodes
from placement.views import wake
from placement.views.door import done, door


@door()
def page(request: HttpRequest) -> HttpResponse:
    """Show the queue."""
    return render(request, "placement/queue.html", _context(request))


@door()
def fragment(request: HttpRequest) -> HttpResponse:
    """Return the live part, or 204 when the page shows it already."""
    context = _context(request)
    if request.GET.get("v") == context["version"]:
        return HttpResponse(status=204)
    return render(request, "placement/_queue.html", context)


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


def _context(request: HttpRequest) -> dict[str, object]:
    shown = queue.page(request.user, notice=accounts.trust_notice())
    return {
        "page": shown,
        "version": shown.version,
        "operator": access.at_least(request.user, Role.OPERATOR),
        "submitter": access.at_least(request.user, Role.SUBMITTER),
    }
