from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path

from placement.api.refusals import nowhere
from placement.api.service import schema, service
from placement.views.door import door


@door()
def openapi(request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI description."""
    return JsonResponse(schema())


urlpatterns = [
    path("api/v1/openapi.json", openapi, name="openapi"),
    *service.addresses(),
    path("api/", nowhere),
    path("api/<path:rest>", nowhere),
]
