"""The API as a page: each operation with what goes in, what comes out, and how curl asks; made from its description."""

from __future__ import annotations

from functools import lru_cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from placement.api import reading
from placement.views.door import door

_OPENED = 3  # so many operations that were looked for are shown at once


@door()
def page(request: HttpRequest) -> HttpResponse:
    """Show all operations, or those in which each word of ``q`` is found."""
    words = tuple(request.GET.get("q", "").lower().split()[:10])
    address = request.build_absolute_uri("/").rstrip("/")
    told, count = _list(address, words)
    context = {"list": told, "q": request.GET.get("q", ""), "count": count, "address": address}
    return render(request, "placement/api.html", context)


@lru_cache(maxsize=8)  # it says the same to everybody until the service is another; half a megabyte each
def _list(address: str, words: tuple[str, ...]) -> tuple[str, int]:
    """Return the operations and shapes as markup, and how many operations there are."""
    groups = [
        (noun.name, [one for one in noun.operations if all(word in one.sought for word in words)])
        for noun in reading.nouns()
    ]
    count = sum(len(operations) for _, operations in groups)
    context = {
        "groups": [(name, operations) for name, operations in groups if operations],
        "shapes": reading.shapes(),
        "count": count,
        "opened": bool(words) and count <= _OPENED,
        "address": address,
    }
    return render_to_string("placement/_api_list.html", context), count
