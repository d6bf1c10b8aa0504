"""One call that explains every decision."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse

from placement.api.shape import endpoint
from placement.selectors import wire


@endpoint()
def queue(request: HttpRequest) -> JsonResponse:
    """Return the queue, the pools, and every reason with its figures."""
    return JsonResponse(wire.queue(request.user))
