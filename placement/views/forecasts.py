"""How good the forecasts were."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from placement.selectors import forecasts
from placement.views.door import door


@door()
def page(request: HttpRequest) -> HttpResponse:
    """Show how often starts came when they were foretold."""
    periods, told_now = forecasts.page()
    return render(request, "placement/forecasts.html", {"periods": periods, "told_now": told_now})
