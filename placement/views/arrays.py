"""An array: how its members stand, and all of them cancelled at once."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from placement.models import Role
from placement.selectors import lists, terms
from placement.services import arrays
from placement.views import wake
from placement.views.door import done, door
from placement.views.lists import keys, links


@door()
def page(request: HttpRequest, array_id: int) -> HttpResponse:
    """Show an array: counts per state, and its members by key, those of one state alone where it is named."""
    shown = terms.array_page(request.user, array_id) if array_id < 2**63 else None
    if shown is None:
        raise Http404(f"There is no array {array_id}.")
    outcome = request.GET.get("outcome", "")
    before, after = keys(request)
    found = lists.jobs(request.user, mine=False, before=before, after=after, outcome=outcome, array=array_id)
    context = {"page": shown, "found": found, "outcome": outcome, **links(found, {"outcome": outcome})}
    return render(request, "placement/array.html", context)


@door(Role.SUBMITTER, ("POST",))
def cancel(request: HttpRequest, array_id: int) -> HttpResponse:
    """Stop all members."""

    def act() -> str:
        said = arrays.cancel(request.user, array_id)
        wake.soon()
        return said

    return done(request, f"/arrays/{array_id}", act)
