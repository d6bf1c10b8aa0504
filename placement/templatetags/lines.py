"""Lines of lists, rendered once per state of a job and not once per viewer and second."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from typing import Any

from django.template import Context, Library
from django.template.loader import get_template
from django.utils import timezone
from django.utils.safestring import SafeString

from placement.selectors import wording
from placement.selectors.rows import ArrayRow

register = Library()

_LIMIT = 4000
_kept: dict[Hashable, SafeString] = {}


@register.simple_tag(takes_context=True)
def line(context: Context, kind: str, row: Any, picks: str = "", alone: bool = False) -> SafeString:
    """Return the line of a frozen row. Its template is given the row and who looks, and nothing else.

    ``picks`` says whose jobs the viewer may tick: "all", "own", "" nobody's. ``alone``: it takes its own place.
    """
    request = context.get("request")
    user = getattr(request, "user", None)
    yours = user is not None and user.get_username() == row.owner
    may = picks == "all" or (picks == "own" and yours)
    since: datetime | None = getattr(row, "since", None)
    age = "" if since is None else wording.span((timezone.now() - since).total_seconds())
    key = (kind, row, yours, may, alone, age, timezone.get_current_timezone_name())
    html: SafeString | None = _kept.get(key)
    if html is None:
        html = get_template(f"placement/_row_{kind}.html").render(
            {**_values(row), "may": may, "alone": alone, "request": request}
        )
        if len(_kept) >= _LIMIT:
            _kept.clear()
        _kept[key] = html
    return html


def _values(row: Any) -> dict[str, Any]:
    """Return what the template of a line shows: of an array its next member, and how many wait behind it."""
    if isinstance(row, ArrayRow):
        return {"row": row.row, "others": row.others, "value": f"a{row.array}"}
    return {"row": row, "others": 0, "value": str(row.id)}
