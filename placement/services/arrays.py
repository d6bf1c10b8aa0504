"""Arrays: many jobs from one submission, stored at once and cancelled as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from placement.domain.admission.decision import Code
from placement.domain.errors import NotFound, NotYours
from placement.domain.jobs import ACTIVE, Outcome, State
from placement.domain.submitting.arrays import looked_at
from placement.models import Job, JobArray, Role
from placement.services import audit, cycle_row, members

_OWN = ("id", "array_index", "form_key", "headline", "code")  # columns in which members differ
_EACH = (  # columns in which those of a sweep differ besides
    *("name", "params", "command", "argv", "estimate"),
    *("key_workload", "key_fingerprint", "key_params", "key_script"),
)


def store(first: Job, size: int, limit: int | None) -> JobArray:
    """Store an array: its first member, and the others as copies of that row. The caller holds the cycle row.

    The database makes the copies in one statement: ten thousand rows of this width take the ORM half a minute.
    """
    array = JobArray.objects.create(name=first.name, user=first.user, size=size, limit=limit)
    first.array, first.array_index = array, 0
    first.save(force_insert=True)
    seen = looked_at(limit)
    behind = f"Waits its turn in an array of {size:,}: the gate looks at the first {seen} that wait."
    quoted = connection.ops.quote_name
    alike = [quoted(f.column) for f in Job._meta.concrete_fields if f.column not in _OWN]
    columns = ", ".join([*alike, "array_index", "headline", "code"])
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH RECURSIVE others(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM others WHERE n + 1 < %s) "
            f"INSERT INTO {quoted(Job._meta.db_table)} ({columns}) "
            f"SELECT {', '.join(alike)}, others.n, "
            f"CASE WHEN others.n < %s THEN '' ELSE %s END, CASE WHEN others.n < %s THEN '' ELSE %s END "
            f"FROM {quoted(Job._meta.db_table)} AS job, others WHERE job.id = %s AND %s > 1",
            [size, seen, behind, seen, Code.ARRAY_LIMIT.value, first.pk, size],
        )
    return array


def store_each(members: Sequence[Job], limit: int | None, sweep: Mapping[str, Any]) -> JobArray:
    """Store the jobs of a sweep: the first, and the others as copies of its row with values of their own.

    The caller holds the cycle row. One statement a job, run as a batch: the ORM takes ten times as long for a
    thousand rows of this width.
    """
    first, size = members[0], len(members)
    array = JobArray.objects.create(name=str(sweep["name"])[:200], user=first.user, size=size, limit=limit, sweep=sweep)
    first.array, first.array_index = array, 0
    first.save(force_insert=True)
    seen = looked_at(limit)
    behind = f"Waits its turn in a sweep of {size:,}: the gate looks at the first {seen} that wait."
    quoted = connection.ops.quote_name
    table = quoted(Job._meta.db_table)
    own = [Job._meta.get_field(name) for name in _EACH]
    alike = [quoted(f.column) for f in Job._meta.concrete_fields if f.column not in {*_OWN, *_EACH}]
    columns = ", ".join([*alike, *(quoted(f.column) for f in own), "array_index", "headline", "code"])
    rows = []
    for index, job in enumerate(members[1:], start=1):
        told = (behind, Code.ARRAY_LIMIT.value) if index >= seen else ("", "")
        values = [f.get_db_prep_save(getattr(job, f.attname), connection) for f in own]
        rows.append([*values, index, *told, first.pk])
    marks = ", ".join(["%s"] * (len(own) + 3))
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {table} ({columns}) SELECT {', '.join(alike)}, {marks} FROM {table} WHERE id = %s", rows
        )
    return array


def cancel(user: User, array_id: int) -> str:
    """Cancel all members: those that wait at once, those that run are stopped by their nodes."""
    array = JobArray.objects.select_related("user").filter(pk=array_id).first()
    if array is None:
        raise NotFound(f"There is no array {array_id}.")
    if array.user_id != user.pk and members.role_of(user) not in (Role.OPERATOR, Role.ADMIN):
        raise NotYours(f"Array {array.pk} is {array.user.get_username()}'s; only they and operators may do that.")
    now, who = timezone.now(), user.get_username()
    asked = {"stop_reason": "cancel", "stop_by": who, "stop_requested_at": now}
    with cycle_row.changing():
        waiting = Job.objects.filter(array=array, state=State.QUEUED).update(
            state=State.FINISHED,
            outcome=Outcome.CANCELLED,
            sentence=f"Cancelled by {who} with its array while it waited.",
            ended_at=now,
            **asked,
        )
        running = Job.objects.filter(array=array, state__in=ACTIVE, stop_requested_at=None).update(**asked)
    if array.user_id != user.pk:
        audit.record(user, "cancel array", f"array {array.pk} of {array.user.get_username()}")
    return (
        f"Array {array.pk}: {waiting} that waited {_are(waiting)} cancelled, {running} {_are(running)} being stopped."
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
