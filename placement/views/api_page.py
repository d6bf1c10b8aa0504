"""The API as a page: each operation with what goes in, what comes out, and how curl asks; made from its description."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from placement.api import reading
from placement.views.door import door


@door()
def page(request: HttpRequest) -> HttpResponse:
    """Show all operations, or those in which each word of ``q`` is found."""
    words = request.GET.get("q", "").lower().split()[:10]
    groups = [
        (noun.name, [one for one in noun.operations if all(word in one.sought for word in words)])
        for noun in reading.nouns()
    ]
    context = {
        "groups": [(name, operations) for name, operations in groups if operations],
        "shapes": reading.shapes(),
        "q": request.GET.get("q", ""),
        "count": sum(len(operations) for _, operations in groups),
        "address": request.build_absolute_uri("/").rstrip("/"),
    }
    return render(request, "placement/api.html", context)
