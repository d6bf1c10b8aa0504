"""How good the forecasts were, as figures."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse

from placement.api.shape import endpoint
from placement.selectors import forecasts


@endpoint()
def accuracy(request: HttpRequest) -> JsonResponse:
    """Return how often starts came when they were foretold, by what it stood on and how far ahead it was."""
    return JsonResponse(forecasts.as_json())
