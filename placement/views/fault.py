"""What is answered when a page could not be made: for want of the database for a while, or by a fault of ours."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.views.defaults import server_error

from placement.selectors import outage


def fault(request: HttpRequest) -> HttpResponse:
    """Return 503 with the reason where storage is away, else 500; neither reads anything, not even who asks."""
    problem = sys.exception()
    told = outage.sentence(problem) if isinstance(problem, Exception) else ""
    if not told:
        return server_error(request)
    part = request.headers.get("HX-Request") == "true"
    page = render_to_string("placement/_refused.html" if part else "503.html", {"sentence": told})
    return HttpResponse(page, status=503, headers={"Cache-Control": "no-store, private", "Retry-After": "2"})
