"""Jobs by the page, and one act on many of them."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query

from placement.api.nouns import Noun
from placement.api.shapes.job import JobList, JobsAsked
from placement.api.shapes.job_acts import BulkBody, BulkSaid
from placement.models import Job
from placement.selectors import lists, wording
from placement.services import bulk
from placement.views import wake

noun = Noun("Jobs")


@noun.read("/jobs", JobList)
def listed(request: HttpRequest, asked: Query[JobsAsked]) -> dict[str, Any]:
    """Return jobs, newest first, 50 at a time.

    A search by name looks through 50,000 numbers at a time; `searched` says which, and `older` goes on from there.
    """
    page = lists.found(
        request.user,
        mine=asked.whose == "mine",
        before=asked.before,
        after=asked.after if asked.before is None else None,
        text=asked.q.replace("\0", "").strip(),
        outcome=asked.outcome,
        array=asked.array,
    )
    return {
        "jobs": [_line(job) for job in page.lines],
        "older": page.older,
        "newer": page.newer,
        "searched": list(page.searched) if page.searched else None,
    }


@noun.change("/jobs/bulk", BulkSaid, sample={"verb": "cancel", "jobs": [12, 13, "a3"]})
def act(request: HttpRequest, asked: BulkBody) -> dict[str, Any]:
    """Do one act to many jobs, each by itself: what is refused for one is done for the others."""
    names = [str(name) for name in asked.jobs]
    report = bulk.apply(
        request.user, asked.verb, names, priority=asked.priority, why=asked.why, form_key=asked.form_key
    )
    if report.count:
        wake.soon()
    results = [{"name": r.name, "count": r.count, "sentence": r.sentence} for r in report.results]
    return {"message": report.sentence, "count": report.count, "results": results}


def _line(row: Job) -> dict[str, Any]:
    return {
        "id": row.pk,
        "name": row.name,
        "user": row.user.get_username(),
        "state": row.state,
        "outcome": row.outcome or None,
        "sentence": row.sentence,
        "headline": row.headline,
        "basis": row.basis or str(wording.mapping(row.estimate).get("basis") or "") or None,
        "workers": row.workers,
        "priority": row.priority,
        "array": row.array_id,
        "submitted_at": row.submitted_at,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "duration_s": row.duration_s,
    }
