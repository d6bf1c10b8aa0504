"""Who changed what: declarations, holds, roles, knobs, what was taught, other people's jobs."""

from __future__ import annotations

from dataclasses import asdict

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from placement.models import Role
from placement.selectors import audited
from placement.views.door import door
from placement.views.lists import keys, links


@door(Role.ADMIN)
def page(request: HttpRequest) -> HttpResponse:
    """Show entries, newest first: all, or those of one person, of one kind, about one thing."""
    who, action, text = (request.GET.get(name, "").strip()[:200] for name in ("who", "action", "text"))
    asked = audited.Asked(who, action, text)
    found = audited.entries(asked, *keys(request))
    context = {
        "entries": found.lines,
        "asked": asked,
        "actions": audited.actions(),
        **links(found, asdict(asked) if asked else {}),
    }
    return render(request, "placement/audit.html", context)
