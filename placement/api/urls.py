from __future__ import annotations

from django.urls import re_path

from placement.api.refusals import nowhere
from placement.api.service import service

urlpatterns = [
    *service.addresses(),
    re_path(r"^api/[\s\S]*\Z", nowhere),  # a line end in an address is no reason to answer with a page
]
