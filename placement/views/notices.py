"""Notices: the bell, the list, and where they go besides pages."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters

from placement.domain import notices as rules
from placement.domain.errors import Refused
from placement.models import Role
from placement.selectors import access
from placement.selectors import notices as shown
from placement.services import delivering
from placement.services import notices as change
from placement.views.door import done, door


@door()
def page(request: HttpRequest) -> HttpResponse:
    """Show a person's notices; what is shown counts as seen."""
    text = request.GET.get("before", "")
    before = int(text) if text.isascii() and text.isdecimal() and len(text) < 18 else None
    lines, older = shown.page(request.user, before)
    newest = lines[0].id if lines and before is None else 0
    return render(request, "placement/notices.html", {"lines": lines, "older": older, "newest": newest})


@door(part_of="notices")
def bell(request: HttpRequest) -> HttpResponse:
    """Return the bell with what is new; 204 when the page shows it already."""
    now = shown.bell(request.user)
    if request.GET.get("v") == now.version:
        return HttpResponse(status=204)
    return render(request, "placement/_bell_news.html", {"bell": now})


@door(methods=("POST",))
def saw(request: HttpRequest) -> HttpResponse:
    """Note up to which notice the list was looked at."""
    text = request.POST.get("newest", "")
    if not (text.isascii() and text.isdecimal() and len(text) < 18):
        return HttpResponseBadRequest("There is no such notice.", content_type="text/plain; charset=utf-8")
    change.saw(request.user, int(text))
    return HttpResponse(status=204) if request.htmx else redirect("notices")


@door()
def settings(request: HttpRequest) -> HttpResponse:
    """Show what a person is told of, and where it goes."""
    return _settings(request)


@door(part_of="notice-settings")
def hooks(request: HttpRequest) -> HttpResponse:
    """Return the places with their newest results."""
    found = shown.hooks(request.user)
    return render(request, "placement/_hooks.html", {"hooks": found, "busy": any(hook.busy for hook in found)})


@door(methods=("POST",))
def choose(request: HttpRequest) -> HttpResponse:
    """Set what a person is told of in pages."""
    text = request.POST.get("waited_min", "")
    minutes = int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else -1
    kinds = request.POST.getlist("kinds")
    return done(request, "notice-settings", lambda: change.choose(request.user, kinds, minutes), "Saved.")


@sensitive_post_parameters("address")
@door(Role.SUBMITTER, ("POST",))
def add(request: HttpRequest) -> HttpResponse:
    """Add a place; what is wrong with its address is said beside it, and the address is not sent back."""
    try:
        address = rules.checked(request.POST.get("address", ""))
        service = delivering.service_of(address)
    except ValueError as error:
        return _settings(request, str(error), request.POST.get("name", "")[:60], 422)
    try:
        hook = change.add_hook(
            request.user, address, request.POST.get("name", ""), request.POST.getlist("kinds"), service
        )
    except Refused as error:
        return _settings(request, error.sentence, request.POST.get("name", "")[:60], 422)
    messages.success(request, f"{hook.name} is added. Send a test to see whether it arrives.")
    return redirect("notice-settings")


@door(Role.SUBMITTER, ("POST",))
def edit(request: HttpRequest, ident: int) -> HttpResponse:
    """Set what a place is told of, and whether."""
    kinds, on = request.POST.getlist("kinds"), request.POST.get("on") == "1"
    return done(request, "notice-settings", lambda: change.change_hook(request.user, ident, kinds, on=on), "Saved.")


@door(Role.SUBMITTER, ("POST",))
def remove(request: HttpRequest, ident: int) -> HttpResponse:
    """Forget a place."""
    return done(request, "notice-settings", lambda: change.remove_hook(request.user, ident), "It is removed.")


@door(Role.SUBMITTER, ("POST",))
def test(request: HttpRequest, ident: int) -> HttpResponse:
    """Send a test to a place."""
    said = "A test is on its way; how it went is shown beside the place."
    return done(request, "notice-settings", lambda: change.test_hook(request.user, ident), said)


def _settings(request: HttpRequest, error: str = "", name: str = "", status: int = 200) -> HttpResponse:
    choices, minutes = shown.choices(request.user)
    hooks = shown.hooks(request.user)
    context = {
        "choices": choices,
        "waited_min": minutes,
        "hooks": hooks,
        "busy": any(hook.busy for hook in hooks),
        "new": shown.new_hook(),
        "submits": access.at_least(request.user, Role.SUBMITTER),
        "services": sorted({words for words in rules.SERVICES.values() if words and ":" not in words}, key=str.lower),
        "error": error,
        "name": name,
    }
    return render(request, "placement/notice_settings.html", context, status=status)
