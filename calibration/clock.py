"""The clock by which ages are judged across processes: never set, never stepped, shared by all who use the database."""

from __future__ import annotations

import time
from pathlib import Path

from django.db import connection


def boot_id() -> str:
    """Return the kernel's id of this boot; a time of another boot has no age."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def now() -> float:
    """Return seconds: the server's clock on PostgreSQL, CLOCK_BOOTTIME beside an SQLite file (one machine)."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
            return float(cursor.fetchone()[0])
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def epoch() -> str:
    """Return what a stored time must carry to be comparable: the boot id, or "server" on PostgreSQL."""
    return "server" if connection.vendor == "postgresql" else boot_id()


def age(at: float | None, stored_epoch: str, clock: float) -> float | None:
    """Return seconds since ``at``, None where it cannot be told; an age below zero counts as very old."""
    if at is None or stored_epoch != epoch():
        return None
    return clock - at if clock >= at else float("inf")
