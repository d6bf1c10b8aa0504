"""One call that explains every decision; and the hold of the whole queue."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from ninja import Query

from placement.api.nouns import Noun
from placement.api.shapes.queue import HoldBody, Queue, QueueAsked, Said
from placement.models import Role
from placement.selectors import access, wire
from placement.selectors.kept import Kept
from placement.services import nodes
from placement.views import wake

noun = Noun("Queue")


@dataclass
class Packable:
    """An answer, and the same packed once for all who take it so: reasons repeat themselves from job to job."""

    plain: bytes

    @cached_property
    def packed(self) -> bytes:
        return gzip.compress(self.plain, 1)


_kept: Kept[Packable] = Kept()


@noun.read("/queue", Queue, name="api-queue")
def queue(request: HttpRequest, asked: Query[QueueAsked]) -> HttpResponse:
    """Return the queue, the pools, and every reason with its figures.

    Nothing committed before is missing in it. What waits comes a page at a time; with `all` in one answer, which takes
    seconds where ten thousand wait.
    """
    operates = access.at_least(request.user, Role.OPERATOR)
    part = None if asked.all else wire.Part(asked.limit, _key(asked.after))
    body = _kept.get((operates, part), lambda: Packable(wire.queue(sees_commands=operates, part=part).encode()))
    packs = "gzip" in request.headers.get("Accept-Encoding", "")
    response = HttpResponse(body.packed if packs else body.plain, content_type="application/json")
    response["Vary"] = "Accept-Encoding"
    if packs:
        response["Content-Encoding"] = "gzip"
    return response


@noun.change("/queue/hold", Said, Role.OPERATOR, sample={"why": "a driver update", "hours": 2})
def hold(request: HttpRequest, asked: HoldBody) -> dict[str, Any]:
    """Let nothing start, for some hours or until released; what runs goes on."""
    until = timezone.now() + timedelta(hours=asked.hours) if asked.hours else None
    nodes.hold(request.user, "queue", 1, until=until, why=asked.why)
    wake.soon()
    return {"message": "The queue is held: what runs goes on, nothing starts."}


@noun.change("/queue/release", Said, Role.OPERATOR)
def release(request: HttpRequest) -> dict[str, Any]:
    """Let jobs start again."""
    nodes.release(request.user, "queue", 1)
    wake.soon()
    return {"message": "The queue is released."}


def _key(text: str) -> tuple[int, int] | None:
    priority, _, number = text.partition(".")
    return (int(priority), int(number)) if text else None
