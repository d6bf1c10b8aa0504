from __future__ import annotations

from importlib.util import find_spec

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path


def healthz(request: HttpRequest) -> HttpResponse:
    """Return "ok" without touching the database: it says that this process answers, nothing more."""
    return HttpResponse("ok", content_type="text/plain")


urlpatterns = [path("healthz", healthz, name="healthz")]
urlpatterns += [path("", include(module)) for module in ("placement.urls", "calibration.urls") if find_spec(module)]
# Last: placement's login stands in for the admin's own.
urlpatterns += [path("admin/", admin.site.urls)]

handler500 = "placement.views.fault.fault"
