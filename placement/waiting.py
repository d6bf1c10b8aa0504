"""Waiting jobs as the gate sees them, kept from one snapshot to the next: an unchanged row costs a lookup."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import EmptyResultSet, ObjectDoesNotExist
from django.db import connection
from django.db.models import Model, QuerySet

from placement.domain.snapshot import Waiting
from placement.models import Job, Workload

UNREAD = (
    "argv", "charges", "command", "cwd", "environment", "evidence", "flags", "leader_exit", "leftovers", "members",
    "note", "params", "run_dir", "runner", "child", "sentence", "setup", "used",
    # What a cycle writes about its own answer; "plan" is the one part that the next cycle goes by.
    "code", "decided_at", "decision", "estimate", "headline",
)  # fmt: skip
"""Columns that say nothing to the gate about a job that waits. A change of any other makes it anew."""

_AT_ONCE = 500  # rows of one query by number


@dataclass(slots=True)
class Entry:
    """One row, and what was made of it; ``stamp`` is what it was made with besides."""

    job: Job
    waiting: Waiting
    stamp: Hashable


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
            read = self._read([row[0] for row in rows if row not in self._kept])
            found = [(row, self._kept.get(row) or read.get(row[0])) for row in rows]
            entries = {row: entry for row, entry in found if entry is not None}  # None: removed between two queries
            self._related(entries.values())
            for entry in entries.values():
                job = entry.job
                prints = (self._people[job.user_id][0], self._workloads.get(job.workload_id or 0, (None,))[0])
                if entry.stamp != (stamp, *prints):
                    entry.waiting, entry.stamp = make(job), (stamp, *prints)
            self._kept = entries
            self._forget_changed(read)
            return list(entries.values())

    def _forget_changed(self, read: Collection[int]) -> None:
        """Keep no row that changed between being compared and being read, as it can outside a transaction."""
        if not read or connection.in_atomic_block:
            return
        same = set(_raw(Job.objects.filter(pk__in=list(read))))
        self._kept = {row: entry for row, entry in self._kept.items() if entry.job.pk not in read or row in same}

    def _read(self, wanted: list[int]) -> dict[int, Entry]:
        found: dict[int, Entry] = {}
        for first in range(0, len(wanted), _AT_ONCE):
            for job in Job.objects.filter(pk__in=wanted[first : first + _AT_ONCE]).defer(*UNREAD):
                found[job.pk] = Entry(job, _NOT_MADE, None)
        return found

    def _related(self, entries: Collection[Entry]) -> None:
        """Give every job its user and workload as they are now: the same objects as before where nothing changed."""
        users = get_user_model().objects.select_related("member")
        self._people = _brought_up(self._people, users.filter(pk__in={e.job.user_id for e in entries}))
        wanted = {e.job.workload_id for e in entries if e.job.workload_id}
        self._workloads = _brought_up(self._workloads, Workload.objects.filter(pk__in=wanted).defer("environment"))
        for entry in entries:
            cache = entry.job._state.fields_cache
            cache["user"] = self._people[entry.job.user_id][1]
            kept = self._workloads.get(entry.job.workload_id or 0)
            cache["workload"] = kept[1] if kept else None


_NOT_MADE: Any = None


def _raw(queue: QuerySet[Job]) -> list[tuple[Any, ...]]:
    """Return the watched columns as the driver gives them: to compare rows nobody has to understand them."""
    watched = [f.attname for f in Job._meta.concrete_fields if f.name not in UNREAD and not f.primary_key]
    try:
        sql, parameters = queue.values_list("pk", *watched).query.sql_with_params()
    except EmptyResultSet:
        return []
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return list(cursor.fetchall())


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
