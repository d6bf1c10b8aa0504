"""Waiting jobs as the gate sees them, kept from one snapshot to the next: an unchanged row costs a lookup."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ObjectDoesNotExist
from django.db import connection
from django.db.models import Model, QuerySet, TextField
from django.db.models.expressions import RawSQL

from placement.domain.world.snapshot import Waiting
from placement.models import Job, Workload

UNREAD = (
    "argv", "charges", "command", "cwd", "environment", "evidence", "flags", "leader_exit", "leftovers", "members",
    "more_devices",
    "note", "params", "run_dir", "runner", "child", "sentence", "setup", "used",
    # What a cycle writes about its own answer; "plan" is the one part that the next cycle goes by.
    "code", "decided_at", "decision", "estimate", "headline",
)  # fmt: skip
"""Columns that say nothing to the gate about a job that waits. A change of any other makes it anew."""

_AT_ONCE = 500  # rows of one query by number


@dataclass(slots=True)
class Entry:
    """One row, and what was made of it; ``stamp`` is what it was made with besides.

    What each cycle asks is beside the row: asked of the row itself, a thousand jobs cost some milliseconds more.
    """

    job: Job
    user_id: int
    workload_id: int | None
    submitted: float  # unix seconds
    for_room_alone: bool  # no array, no time; ties and quotas are in other tables
    waiting: Waiting = field(default_factory=lambda: _NOT_MADE)
    stamp: Hashable = None


class Queue:
    """The waiting jobs of the last snapshot, with their users and workloads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Hashable, Entry] = {}
        self._people: dict[int, tuple[Hashable, Any]] = {}
        self._workloads: dict[int, tuple[Hashable, Workload]] = {}

    def entries(self, queue: QuerySet[Job], stamp: Hashable, make: Callable[[Job], Waiting]) -> list[Entry]:
        """Return an entry per row in the order of the query, made anew where row, user, workload or stamp changed.

        What only time changes is the caller's to bring up to date. Costs three queries, one more where a row is new.
        """
        rows = _raw(queue)
        with self._lock:
            kept = self._kept
            read = self._read([pk for pk, row in rows if row not in kept])
            found = [(row, kept.get(row) or read.get(pk)) for pk, row in rows]
            entries = {row: entry for row, entry in found if entry is not None}  # None: removed between two queries
            self._related(entries.values())
            stamps: dict[Hashable, Hashable] = {}
            for entry in entries.values():
                pair = entry.user_id, entry.workload_id
                made_with = stamps.get(pair)
                if made_with is None:
                    made_with = stamps[pair] = (stamp, self._people[pair[0]][0], self._workload(pair[1])[0])
                if entry.stamp != made_with:
                    cache = entry.job._state.fields_cache
                    cache["user"], cache["workload"] = self._people[pair[0]][1], self._workload(pair[1])[1]
                    entry.waiting = make(entry.job)
                entry.stamp = made_with
            self._kept = entries
            self._forget_changed(read)
            return list(entries.values())

    def _forget_changed(self, read: Collection[int]) -> None:
        """Keep no row that changed between being compared and being read, as it can outside a transaction."""
        if not read or connection.in_atomic_block:
            return
        same = {row for _, row in _raw(Job.objects.filter(pk__in=list(read)))}
        self._kept = {row: entry for row, entry in self._kept.items() if entry.job.pk not in read or row in same}

    def _read(self, wanted: list[int]) -> dict[int, Entry]:
        found: dict[int, Entry] = {}
        for first in range(0, len(wanted), _AT_ONCE):
            for job in Job.objects.filter(pk__in=wanted[first : first + _AT_ONCE]).defer(*UNREAD):
                alone = job.array_id is None and job.not_before is None
                found[job.pk] = Entry(job, job.user_id, job.workload_id, job.submitted_at.timestamp(), alone)
        return found

    def _related(self, entries: Collection[Entry]) -> None:
        """Bring users and workloads up to date: the same objects as before where nothing changed."""
        users = get_user_model().objects.select_related("member")
        self._people = _brought_up(self._people, users.filter(pk__in={e.user_id for e in entries}))
        wanted = {e.workload_id for e in entries if e.workload_id}
        works = Workload.objects.filter(pk__in=wanted).defer("environment")
        self._workloads = _brought_up(self._workloads, works if wanted else ())

    def _workload(self, pk: int | None) -> tuple[Hashable, Workload | None]:
        return self._workloads.get(pk or 0, (None, None))


_NOT_MADE: Any = None


def _raw(queue: QuerySet[Job]) -> list[tuple[int, str]]:
    """Return each job's number, and its watched columns as one text."""
    return list(queue.annotate(row=RawSQL(_row(connection.vendor), (), TextField())).values_list("pk", "row"))


@cache
def _row(vendor: str) -> str:
    """Return the columns as one text, in SQL: to compare rows nobody has to understand them, and texts compare at once.

    Made once: as an expression of sixty columns Django needs longer to write it down than a short queue takes.
    """
    name, table = connection.ops.quote_name, Job._meta.db_table
    watched = [f.column for f in Job._meta.concrete_fields if f.name not in UNREAD]
    columns = ", ".join(f"{name(table)}.{name(column)}" for column in watched)
    return f"ROW({columns})::text" if vendor == "postgresql" else f"JSON_ARRAY({columns})"


def _brought_up(kept: dict[int, tuple[Hashable, Any]], now: Iterable[Any]) -> dict[int, tuple[Hashable, Any]]:
    found = {}
    for row in now:
        print_ = _print(row)
        before = kept.get(row.pk)
        found[row.pk] = before if before is not None and before[0] == print_ else (print_, row)
    return found


def _print(row: Model) -> Hashable:
    """Return a row's values, a user's with those of their membership."""
    deferred = row.get_deferred_fields()
    values = [repr(getattr(row, f.attname)) for f in row._meta.concrete_fields if f.attname not in deferred]
    try:
        member = getattr(row, "member", None)
    except ObjectDoesNotExist:
        member = None
    return (*values, None if member is None else _print(member))
