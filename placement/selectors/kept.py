"""What many ask for and only a commit changes, read once: kept while the database stands as it did."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Hashable
from time import monotonic
from typing import Generic, TypeVar
from urllib.parse import quote

from django.db import DatabaseError, connection

T = TypeVar("T")

POLLED = 0.4  # seconds that a poll's answer may be old: polls come each second, from many viewers
_LONGEST = 1.0  # seconds; ages and figures that only time changes are not older than this
_LIMIT = 2000  # entries per keeper
_reading = threading.Lock()
_reader: tuple[int, str, sqlite3.Connection] | None = None


def standing() -> Hashable | None:
    """Return a mark of what is committed: while two marks are equal, nobody's commit lies between them.

    None where that cannot be told, inside a transaction above all: what it sees is its own.
    """
    if connection.in_atomic_block:
        return None
    if connection.vendor == "sqlite":
        name = str(connection.settings_dict["NAME"])
        return None if ":memory:" in name or "mode=memory" in name else _data_version(name)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_snapshot()::text")
            return str(cursor.fetchone()[0])
    except DatabaseError:
        return None


def _data_version(path: str) -> Hashable | None:
    """Return SQLite's count of others' commits, seen by a connection that never writes: so of everybody's."""
    global _reader
    with _reading:
        try:
            if _reader is None or _reader[:2] != (os.getpid(), path):
                _let_go()
                opened = sqlite3.connect(
                    f"file:///{quote(path.lstrip('/'))}?mode=ro",
                    uri=True,
                    timeout=1,
                    check_same_thread=False,
                    isolation_level=None,
                )
                _reader = (os.getpid(), path, opened)
            return (path, id(_reader[2]), _reader[2].execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error:
            _let_go()
            return None


def _let_go() -> None:
    """Close what is open; a parent's connection is the parent's to close."""
    global _reader
    if _reader is not None and _reader[0] == os.getpid():
        _reader[2].close()
    _reader = None


class Kept(Generic[T]):
    """The newest value per kind of asker, built by whoever first finds it too old while the others of the kind wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._building: dict[Hashable, threading.Lock] = {}
        self._kept: dict[Hashable, tuple[float, Hashable | None, T]] = {}

    def get(self, kind: Hashable, build: Callable[[], T], *, anyhow: float = 0.0) -> T:
        """Return a value that no commit has overtaken, or one that is at most ``anyhow`` seconds old.

        A value that no commit has overtaken is never older than a second. An error of ``build`` goes to whoever asked.
        """
        mark = standing()  # before the reading: what is committed while it is built counts as news
        with self._lock:
            if len(self._kept) >= _LIMIT:
                self._kept.clear()
                self._building.clear()
            building = self._building.setdefault(kind, threading.Lock())
        with building:
            kept = self._kept.get(kind)
            now = monotonic()
            if kept is not None:
                age, same = now - kept[0], mark is not None and kept[1] == mark
                if 0 <= age < max(_LONGEST if same else 0.0, anyhow):
                    return kept[2]
            value = build()
            self._kept[kind] = (now, mark, value)
            return value
