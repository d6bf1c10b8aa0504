"""All jobs, newest first, a page at a time."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from placement.models import Role
from placement.selectors import access, lists, wording
from placement.views.door import door


@door()
def jobs(request: HttpRequest) -> HttpResponse:
    """Show jobs: one's own or everybody's, by name and by how they ended."""
    mine = request.GET.get("whose", "all") == "mine"
    text = request.GET.get("q", "").strip().replace("\0", "")
    outcome = request.GET.get("outcome", "")
    before, after = keys(request)
    page = lists.found(request.user, mine=mine, before=before, after=after, text=text, outcome=outcome)
    found = lists.lines(page)
    context = {
        "found": found,
        "mine": mine,
        "q": text,
        "outcome": outcome,
        "picks": access.picks(request.user),
        "operator": access.at_least(request.user, Role.OPERATOR),
        "back": request.get_full_path(),
        "outcomes": [*lists.STATE_WORDS.items(), *wording.OUTCOMES.items()],
        **links(found, {"whose": "mine" if mine else "all", "q": text, "outcome": outcome}),
    }
    return render(request, "placement/jobs.html", context)


def keys(request: HttpRequest) -> tuple[int | None, int | None]:
    """Return the keys below and above which to go on; what is no number is no key."""
    below, above = (_number(request.GET.get(name, "")) for name in ("before", "after"))
    return below, above if below is None else None


def links(page: lists.Page[Any], kept: dict[str, str]) -> dict[str, str]:
    """Return the addresses of the next pages, "" where there is none; ``kept`` are the filters that go along."""
    return {
        "older": f"?{urlencode({**kept, 'before': page.older})}" if page.older is not None else "",
        "newer": f"?{urlencode({**kept, 'after': page.newer})}" if page.newer is not None else "",
    }


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
