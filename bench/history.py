"""A past of any length, written by the database itself from one row of each kind; Django must be set up."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from django.db import connection, models
from django.utils import timezone

from calibration.models import Point, Sediment, params_digest
from placement.models import AuditEntry, DecisionRecord, Job, Lease

AT_ONCE = 50_000  # rows of one statement: what the database has to keep until it is done
DAY = 86_400
GIB = 1 << 30


@dataclass(frozen=True)
class Past:
    """How much there was: ``jobs`` over ``days``, ``runs`` of ``keys`` kinds that taught, readings of ``pools``."""

    jobs: int
    runs: int
    days: float
    keys: int
    node: str
    pools: tuple[str, ...]
    audit: int


def write(past: Past, draft: Job, number: str, users: list[int], decision: Any, estimate: Any) -> None:
    """Store the past of a service: jobs and all that they left, readings, audit entries.

    ``draft`` is a job as it would be submitted; ``number`` is the text in its parameters that tells keys apart.
    """
    _quick()
    _keys(past, draft, number)
    _jobs(past, draft, number, users, decision, estimate)
    _points(past)
    entry = AuditEntry.objects.create(
        id=_free(AuditEntry), who="ada", action="cancel job", subject="#1 of bob", detail={"why": "x" * 60}
    )
    _multiply(entry, past.audit, at=_moment(past, past.audit), subject=f"'#' || {_mod(5000)} || ' of bob'")
    _settle()


def _jobs(past: Past, draft: Job, number: str, users: list[int], decision: Any, estimate: Any) -> None:
    now = timezone.now()
    draft.state, draft.outcome, draft.sentence = "finished", "completed", "Completed with code 0 after 1 min 12 s."
    draft.node, draft.device, draft.basis = past.node, past.pools[-1], "measured"
    draft.charges = {
        pool: {"granted": GIB, "held": GIB, "at_start": GIB, "cap": 2 * GIB, "margin": 64 << 20, "basis": "measured",
               "settled": True, "proof": "learned", "note": ""}
        for pool in ("ram", past.pools[-1])
    }  # fmt: skip
    draft.used = {"ram": GIB // 2, past.pools[-1]: GIB}
    draft.decision, draft.decided_at, draft.estimate, draft.headline = decision, now, estimate, "Starts on gpu0."
    draft.evidence = {"feeds": "need", "exit": {"max_rss_bytes": GIB // 2, "trimmed_bytes": 0}}
    draft.started_at = draft.ended_at = draft.admitted_at = now
    draft.duration_s, draft.exit_code, draft.form_key = 72.5, 0, "bench-1"
    draft.pk = _free(Job)
    if draft.pk != 1:
        raise ValueError(f"The past is written before anything else, but there are jobs up to #{draft.pk - 1}.")
    draft.save(force_insert=True)
    began = _moment(past, past.jobs)
    ended = _moment(past, past.jobs, f"60 + {_mod(3600)}")
    _multiply(
        draft,
        past.jobs,
        name=f"'run-' || {_mod(past.keys)}",
        user_id=f"{min(users)} + {_mod(len(users))}",
        form_key="'bench-' || n",
        key_params=f"replace(t.key_params, '{number}', {_key(past, number)})",
        outcome=f"CASE WHEN {_mod(10_000)} = 7 THEN 'lost' WHEN {_mod(20)} = 0 THEN 'failed' ELSE 'completed' END",
        submitted_at=began,
        admitted_at=began,
        decided_at=began,
        started_at=began,
        ended_at=ended,
    )
    record = DecisionRecord.objects.create(
        id=_free(DecisionRecord), job=draft, at=now, verdict="start", headline="Starts on gpu0.", body=decision
    )
    _multiply(record, past.jobs, job_id="n", at=began)
    for place, pool in enumerate(("ram", past.pools[-1])):
        lease = Lease.objects.create(
            id=_free(Lease), job=draft, node=past.node, pool=pool, kind="ram" if not place else "vram", bytes=GIB,
            granted_at=now, released_at=now,
        )  # fmt: skip
        _multiply(lease, past.jobs, job_id=f"n - {place * past.jobs}", granted_at=began,
                  released_at=ended)  # fmt: skip
    row = Sediment.objects.create(
        id=_free(Sediment), owner="job:1", workload=draft.key_workload,
        fingerprint=draft.key_fingerprint, params=draft.key_params,
        script=draft.key_script, user=draft.user.get_username(), workers=1, completed=True, outcome="completed",
        peaks={"ram": GIB // 2, "vram": 20 * GIB}, device_peaks=[20 * GIB], duration=72.5, longest_gap=1.0,
        seconds_to_peak={"ram": 20.0, "vram": 30.0}, samples={"ram": 70, "vram": 70},
        charge={"ram": GIB, "vram": 20 * GIB}, at=now,
    )  # fmt: skip
    _multiply(
        row,
        past.runs,
        source="JOIN bench_keys k ON k.number = " + _mod(past.keys),
        owner="'job:' || n",
        params="k.params",
        params_digest="k.digest",
        at=_moment(past, past.runs),
    )


def _points(past: Past) -> None:
    now = int(time.time())
    for pool in past.pools:
        for step, span in ((1, 7200), (10, 2 * DAY), (300, 30 * DAY)):
            begin = now // step * step - min(span, int(past.days * DAY))
            count = (now - begin) // step
            point = Point.objects.create(
                id=_free(Point), node=past.node, pool=pool, step=step, at=begin, total=24 * GIB, used=GIB,
                free=23 * GIB, owners={"job:1": GIB // 2},
            )  # fmt: skip
            _multiply(point, count, at=f"{begin} + (n - {point.pk}) * {step}")


def _keys(past: Past, draft: Job, number: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE bench_keys (number integer PRIMARY KEY, params text, digest text)")
        for key in range(past.keys):
            params = draft.key_params.replace(number, str(int(number) + key))
            cursor.execute("INSERT INTO bench_keys VALUES (%s, %s, %s)", [key, params, params_digest(params)])


def _multiply(row: models.Model, count: int, *, source: str = "", **changes: str) -> None:
    """Store copies of a row until there are ``count`` of them; ``changes`` are SQL by column, ``n`` is the new id."""
    meta, last = row._meta, row.pk + count - 1
    columns = [field.column for field in meta.concrete_fields]
    values = ", ".join("n" if c == "id" else changes.get(c, f't."{c}"') for c in columns)
    names = ", ".join(f'"{c}"' for c in columns)
    for begin in range(row.pk + 1, last + 1, AT_ONCE):
        end = min(begin + AT_ONCE - 1, last)
        with connection.cursor() as cursor:
            cursor.execute(
                f'INSERT INTO "{meta.db_table}" ({names}) SELECT {values} FROM {_series(begin, end)} '
                f'JOIN "{meta.db_table}" t ON t.id = {row.pk} {source}'
            )


def _free(model: type[models.Model]) -> int:
    """Return the next id: PostgreSQL's own counter does not see what was stored with an id."""
    return (model._default_manager.aggregate(last=models.Max("pk"))["last"] or 0) + 1


def _series(begin: int, end: int) -> str:
    if connection.vendor == "postgresql":
        return f"generate_series({begin}, {end}) AS s(n)"
    return f"(WITH RECURSIVE s(n) AS (SELECT {begin} UNION ALL SELECT n + 1 FROM s WHERE n < {end}) SELECT n FROM s)"


def _mod(divisor: int) -> str:
    return f"(n % {divisor})"


def _key(past: Past, number: str) -> str:
    return f"CAST({number} + {_mod(past.keys)} AS text)"


def _moment(past: Past, rows: int, plus: str = "0") -> str:
    """Return SQL for the moment of row ``n``: the newest an hour ago, the oldest so many days, evenly."""
    newest = time.time() - 2 * 3600
    seconds = f"({newest:.0f} - ({rows} - n) * {past.days * DAY / rows:.6f} + {plus})"
    if connection.vendor == "postgresql":
        return f"to_timestamp({seconds})"
    return f"strftime('%Y-%m-%d %H:%M:%f', {seconds}, 'unixepoch')"


def _quick() -> None:
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA synchronous=OFF")
            cursor.execute("PRAGMA cache_size=-400000")


def _settle() -> None:
    """Leave the database as time would have: counters after the last id, PostgreSQL's figures up to date."""
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE bench_keys")
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            cursor.execute("PRAGMA cache_size=-2000")
            cursor.execute("PRAGMA synchronous=NORMAL")
            return
        for model in (Job, DecisionRecord, Lease, Sediment, Point, AuditEntry):
            table = model._meta.db_table
            cursor.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))")
        cursor.execute("VACUUM ANALYZE")


def sizes() -> dict[str, int]:
    """Return rows by table, and bytes of the whole database."""
    with connection.cursor() as cursor:
        found = {}
        for model in (Job, DecisionRecord, Lease, Sediment, Point, AuditEntry):
            cursor.execute(f"SELECT count(*) FROM {model._meta.db_table}")
            found[model.__name__] = cursor.fetchone()[0]
        if connection.vendor == "sqlite":
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        else:
            cursor.execute("SELECT pg_database_size(current_database())")
        found["bytes"] = cursor.fetchone()[0]
    return found
