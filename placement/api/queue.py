"""One call that explains every decision."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from functools import cached_property

from django.http import HttpRequest, HttpResponse

from placement.api.shape import endpoint
from placement.models import Role
from placement.selectors import access, wire
from placement.selectors.kept import Kept


@dataclass
class Body:
    """An answer, and the same packed once for all who take it so: reasons repeat themselves from job to job."""

    plain: bytes

    @cached_property
    def packed(self) -> bytes:
        return gzip.compress(self.plain, 1)


_kept: Kept[Body] = Kept()


@endpoint()
def queue(request: HttpRequest) -> HttpResponse:
    """Return the queue, the pools, and every reason with its figures; nothing committed before is missing in it."""
    operates = access.at_least(request.user, Role.OPERATOR)
    body = _kept.get(operates, lambda: Body(wire.queue(sees_commands=operates).encode()))
    packs = "gzip" in request.headers.get("Accept-Encoding", "")
    response = HttpResponse(body.packed if packs else body.plain, content_type="application/json")
    response["Vary"] = "Accept-Encoding"
    if packs:
        response["Content-Encoding"] = "gzip"
    return response
