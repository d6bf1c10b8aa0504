"""Parts of pages that many ask for, packed once for all of them: rows repeat themselves, a tenth is left of them."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cached_property

from django.http import HttpRequest, HttpResponse

_SMALL = 500  # bytes that are not worth it


@dataclass
class Body:
    """A rendered part. It holds nothing secret: who can choose some of it and watch the length learns nothing."""

    plain: bytes

    @cached_property
    def packed(self) -> bytes:
        return gzip.compress(self.plain, 4)


def answer(request: HttpRequest, body: Body) -> HttpResponse:
    """Return the part, packed for whoever takes it so."""
    packs = len(body.plain) > _SMALL and "gzip" in request.headers.get("Accept-Encoding", "")
    response = HttpResponse(body.packed if packs else body.plain)
    response["Vary"] = "Accept-Encoding"
    if packs:
        response["Content-Encoding"] = "gzip"
    return response
