from __future__ import annotations

from django.urls import path

from placement.api.refusals import nowhere
from placement.api.service import service

urlpatterns = [
    *service.addresses(),
    path("api/", nowhere),
    path("api/<path:rest>", nowhere),
]
