"""What the instrument lets go: readings past their keep, sediment that no estimate reads any more. In short steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from calibration.models import Point, Sediment
from calibration.rows import NEWEST

AT_ONCE = 1000  # rows deleted in one transaction
MOST_KEYS = 5000  # keys looked at in one prune
_LONGEST_PAUSE = 0.2  # seconds

_seen = 0  # the newest row of sediment whose key was looked at by this process


def repeated(step: Callable[[], int], seconds: float) -> int:
    """Repeat a step until it finds nothing or the time is over; return the sum of what it returned.

    Each step is a transaction of its own, and after it everybody else has as long for theirs: a large backlog takes
    many prunes, and nobody waits for it.
    """
    gone, end = 0, time.monotonic() + seconds
    began = time.monotonic()
    while done := step():
        gone += done
        now = time.monotonic()
        if now >= end:
            break
        time.sleep(min(now - began, _LONGEST_PAUSE))
        began = time.monotonic()
    return gone


def points(now: float, keep: Mapping[int, float], seconds: float) -> int:
    """Delete points older than their step is kept (step to seconds; ``now`` in unix seconds). Return how many."""

    def of(step: int) -> Callable[[], int]:
        old = Point.objects.filter(step=step, at__lt=int(now - keep[step])).order_by("at")

        def delete() -> int:
            ids = list(old.values_list("pk", flat=True)[:AT_ONCE])
            return Point.objects.filter(pk__in=ids).delete()[0] if ids else 0

        return delete

    return sum(repeated(of(step), seconds / len(keep)) for step in keep)


def sediment(seconds: float) -> int:
    """Delete rows that estimates do not reach: older than the newest NEWEST of their key. Marked ones stay.

    Only keys that were run since this process looked last can have too many. Return how many rows went.
    """
    global _seen
    fresh = Sediment.objects.filter(pk__gt=_seen).order_by("-pk")
    found = list(fresh.values_list("pk", "workload", "params_digest")[:MOST_KEYS])
    gone, end = 0, time.monotonic() + seconds
    for workload, digest in {(workload, digest) for _, workload, digest in found}:
        gone += repeated(_beyond(workload, digest), end - time.monotonic())
        if time.monotonic() >= end:
            return gone  # the rest is looked at again
    _seen = max((pk for pk, _, _ in found), default=_seen)
    return gone


def _beyond(workload: str, digest: str) -> Callable[[], int]:
    rows = Sediment.objects.filter(workload=workload, params_digest=digest, marked_at=None).order_by("-at")

    def delete() -> int:
        ids = list(rows.values_list("pk", flat=True)[NEWEST : NEWEST + AT_ONCE])
        return Sediment.objects.filter(pk__in=ids).delete()[0] if ids else 0

    return delete
