"""What there is at all, asked in one statement: a quiet cycle does not read table after table to find each empty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from django.db import connection

from calibration.models import StoreVersion
from placement import conditions
from placement.domain.jobs import State
from placement.models import InsideRequest, Job, Lease, RequestState


@dataclass(frozen=True, slots=True)
class Present:
    """Whether there is any row of each kind, and the version of the store that estimates are made at.

    ``tied``: a queued job that waits for others; ``asks``: a running job that waits for more; ``lent``: a lease that
    was asked for by one as it ran; ``crowded``: an array of which a cycle looks at some members only.
    """

    queued: bool
    tied: bool
    asks: bool
    lent: bool
    crowded: bool
    version: int


def now() -> Present:
    """Return what there is."""
    statement, values = _statement(connection.vendor)
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        *found, version = cursor.fetchone()
    return Present(*map(bool, found), version=version or 0)


@cache
def _statement(vendor: str) -> tuple[str, tuple[object, ...]]:
    """Return the statement and its values, made once: to write it down takes Django longer than to ask it."""
    queued = Job.objects.filter(state=State.QUEUED)
    rows = (
        queued,
        queued.filter(tied=True),
        InsideRequest.objects.filter(state=RequestState.WAITING),
        Lease.objects.filter(released_at=None, request__isnull=False),
        conditions.crowded(),
    )
    asked = [some.values("pk").query.sql_with_params() for some in rows]
    version, of = StoreVersion.objects.filter(pk=1).values("version").query.sql_with_params()
    parts = [f"EXISTS ({statement})" for statement, _ in asked]
    values = [value for _, some in asked for value in some]
    return f"SELECT {', '.join(parts)}, ({version})", (*values, *of)
