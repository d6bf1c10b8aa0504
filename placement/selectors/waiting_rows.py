"""What is shown of waiting jobs, kept per job while its row stands: an unchanged one costs a dictionary lookup."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from itertools import islice
from typing import Any, Generic, TypeVar

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import QuerySet

from placement.models import Job
from placement.selectors import expected

T = TypeVar("T")

WATCHED = (
    "pk", "name", "user__username", "workers", "priority", "submitted_at", "headline", "code", "decided_at",
    "held_by", "held_at", "held_until", "held_why", "forecast__made_at", "array_id", "array_index", "not_before",
)  # fmt: skip
"""Columns of which a change makes a line anew; a decision and its estimate change together with ``decided_at``."""
_DECIDED_AT = WATCHED.index("decided_at")
_DECIDED = ("decision", "estimate", *(f"forecast__{name}" for name in expected.COLUMNS))
_LIMIT = 4000  # lines kept: pages of a long queue, and parts of it that somebody asks for, one beside the other
_AT_ONCE = 500  # rows of one query by number


class Lines(Generic[T]):
    """One line per waiting job, made from its row by ``make``, which may read what is watched and nothing else."""

    def __init__(self, make: Callable[[Job], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._kept: dict[Hashable, T] = {}

    def of(self, queue: QuerySet[Job]) -> list[T]:
        """Return the lines in the order of the query."""
        rows = list(queue.values_list(*WATCHED))
        with self._lock:
            kept = self._kept
            made = self._made([row[0] for row in rows if row not in kept])
            lines = []
            for row in rows:
                found = (row, kept.pop(row)) if row in kept else made.get(row[0])
                if found is None:
                    continue  # removed between the two queries
                now, line = found
                lines.append(line)
                if now[_DECIDED_AT] is not None:
                    kept.pop(now, None)
                    kept[now] = line  # at the end: what was asked for longest ago goes first
            for old in list(islice(kept, max(0, len(kept) - _LIMIT))):
                del kept[old]
            return lines

    def _made(self, wanted: list[int]) -> dict[int, tuple[tuple[Any, ...], T]]:
        """Return a line per job beside the row that it is made from, which can be newer than the one asked about."""
        found: dict[int, tuple[tuple[Any, ...], T]] = {}
        for first in range(0, len(wanted), _AT_ONCE):
            some = Job.objects.filter(pk__in=wanted[first : first + _AT_ONCE]).select_related("user", "forecast")
            for job in some.only(*(w.replace("pk", "id") for w in WATCHED), *_DECIDED):
                found[job.pk] = (tuple(_value(job, name) for name in WATCHED), self._make(job))
        return found


def _value(job: Job, name: str) -> Any:
    """Return what a query by this name gives: None where there is no such row beside the job's."""
    value: Any = job
    for part in name.split("__"):
        try:
            value = getattr(value, part)
        except ObjectDoesNotExist:
            return None
    return value
