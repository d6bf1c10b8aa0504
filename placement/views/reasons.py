"""What each reason means."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from placement.selectors import reasons
from placement.views.door import door


@door()
def page(request: HttpRequest) -> HttpResponse:
    """Show every reason, each under its code."""
    return render(request, "placement/reasons.html", {"reasons": reasons.reasons()})
