"""How much a database had to do for what runs in a block: a figure that a busy machine does not change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction

GROWING = (
    "placement_job", "placement_decisionrecord", "placement_lease", "placement_auditentry",
    "placement_forecast", "placement_forecastrecord", "placement_dependency", "calibration_sediment",
    "calibration_point",
)  # fmt: skip


@dataclass
class Work:
    """``steps`` of SQLite's virtual machine, or ``rows`` of growing tables that PostgreSQL looked at, by statement."""

    queries: int = 0
    steps: int = 0
    rows: dict[str, int] = field(default_factory=dict)


@contextmanager
def counted() -> Iterator[Work]:
    """Count the work of a block on the default connection."""
    work = Work()

    def seen(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        work.queries += 1
        if connection.vendor == "postgresql" and not many and sql.startswith(("SELECT", "UPDATE", "DELETE")):
            work.rows[sql[:3000]] = max(work.rows.get(sql[:3000], 0), _looked_at(sql, params))
        return execute(sql, params, many, context)

    def step() -> int:
        work.steps += 1
        return 0

    connection.ensure_connection()
    sqlite = connection.connection if connection.vendor == "sqlite" else None
    if sqlite is not None:
        sqlite.set_progress_handler(step, 1)
    try:
        with connection.execute_wrapper(seen):
            yield work
    finally:
        if sqlite is not None:
            sqlite.set_progress_handler(None, 1)


def _looked_at(sql: str, params: Any) -> int:
    """Return the rows of growing tables that a statement reads, kept or thrown away; what it writes is undone."""
    raw = connection.connection
    with transaction.atomic():
        with raw.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan = off")  # a small table is read whole where a large one is not
            cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}", params)
            (found,) = cursor.fetchone()
        transaction.set_rollback(True)
    plan = json.loads(found) if isinstance(found, str) else found
    return _rows(plan[0]["Plan"])


def _rows(node: dict[str, Any]) -> int:
    own = 0
    if node.get("Relation Name") in GROWING and "Scan" in node["Node Type"]:
        dropped = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        own = (node["Actual Rows"] + dropped) * node["Actual Loops"]
    return int(own) + sum(_rows(child) for child in node.get("Plans", ()))
