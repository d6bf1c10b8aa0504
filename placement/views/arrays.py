"""An array: how its members stand, live, and all of them cancelled at once."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django_htmx.http import HttpResponseStopPolling

from placement.models import Role
from placement.selectors import access, lists, queue, terms
from placement.services import arrays
from placement.views import wake
from placement.views.door import done, door
from placement.views.lists import keys, links


@door()
def page(request: HttpRequest, array_id: int) -> HttpResponse:
    """Show an array: counts per state, and its members by key, those of one state alone where it is named."""
    return render(request, "placement/array.html", _context(request, array_id))


@door(part_of="array")
def fragment(request: HttpRequest, array_id: int) -> HttpResponse:
    """Return the live part, 204 when the page shows it already; once all members ended it is the last answer."""
    context = _context(request, array_id)
    if request.GET.get("v") == context["version"]:
        return HttpResponse(status=204)
    response = render(request, "placement/_array.html", context)
    return response if context["page"].left else HttpResponseStopPolling(response.content)


@door(Role.SUBMITTER, ("POST",))
def cancel(request: HttpRequest, array_id: int) -> HttpResponse:
    """Stop all members."""

    def act() -> str:
        said = arrays.cancel(request.user, array_id)
        wake.soon()
        return said

    return done(request, f"/arrays/{array_id}", act)


def _context(request: HttpRequest, array_id: int) -> dict[str, Any]:
    shown = terms.array_page(request.user, array_id) if array_id < 2**63 else None
    if shown is None:
        raise Http404(f"There is no array {array_id}.")
    outcome = request.GET.get("outcome", "")
    before, after = keys(request)
    page = lists.found(request.user, mine=False, before=before, after=after, outcome=outcome, array=array_id)
    found = lists.lines(page)
    asked = {"outcome": outcome, "before": before, "after": after}
    return {
        "page": shown,
        "found": found,
        "outcome": outcome,
        "asked": asked,
        "picks": access.picks(request.user),
        "operator": access.at_least(request.user, Role.OPERATOR),
        "back": f"/arrays/{array_id}",
        "version": queue.digest((shown, found)),
        **links(found, {"outcome": outcome}),
    }
