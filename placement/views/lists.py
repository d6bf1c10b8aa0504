"""All jobs, newest first, a page at a time."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from placement.selectors import lists, wording
from placement.views.door import door


@door()
def jobs(request: HttpRequest) -> HttpResponse:
    """Show jobs: one's own or everybody's, by name and by how they ended."""
    mine = request.GET.get("whose", "all") == "mine"
    text = request.GET.get("q", "").strip().replace("\0", "")
    outcome = request.GET.get("outcome", "")
    found = lists.jobs(request.user, mine=mine, before=before(request), text=text, outcome=outcome)
    kept = {"whose": "mine" if mine else "all", "q": text, "outcome": outcome}
    context = {
        "found": found,
        "mine": mine,
        "q": text,
        "outcome": outcome,
        "outcomes": [*lists.STATE_WORDS.items(), *wording.OUTCOMES.items()],
        "older": f"?{urlencode({**kept, 'before': found.after})}" if found.after else "",
    }
    return render(request, "placement/jobs.html", context)


def before(request: HttpRequest) -> int | None:
    """Return the key to go on from; one that is no number is no key."""
    text = request.GET.get("before", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None
