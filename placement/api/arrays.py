"""Arrays: how their members stand, and all of them cancelled at once."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from placement.api.nouns import Noun
from placement.api.shapes.array import ArrayAnswer, ArraySaid
from placement.api.shapes.kinds import Id
from placement.domain.errors import NotFound
from placement.selectors import terms
from placement.services import arrays
from placement.views import wake

noun = Noun("Arrays")


@noun.read("/arrays/{int:array_id}", ArrayAnswer, name="api-array")
def look(request: HttpRequest, array_id: Id) -> dict[str, Any]:
    """Return an array: how many of its members are in which state."""
    return {"array": _told(request, array_id)}


@noun.change("/arrays/{int:array_id}/cancel", ArraySaid, name="api-array-cancel")
def cancel(request: HttpRequest, array_id: Id) -> dict[str, Any]:
    """Stop all members of an array."""
    _told(request, array_id)
    said = arrays.cancel(request.user, array_id)
    wake.soon()
    return {"message": said, "array": _told(request, array_id)}


def _told(request: HttpRequest, array_id: int) -> dict[str, Any]:
    page = terms.array_page(request.user, array_id) if array_id < 2**63 else None
    if page is None:
        raise NotFound(f"There is no array {array_id}.")
    return {
        "id": page.id,
        "name": page.name,
        "user": page.owner,
        "size": page.size,
        "limit": page.limit,
        "made_at": page.made,
        "counts": {state.key: state.count for state in page.counts},
    }
