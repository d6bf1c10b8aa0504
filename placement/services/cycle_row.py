"""The cycle row: locked first by whoever changes queue, leases, holds or declarations."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from django.db import OperationalError, connection, transaction
from django.db.models import F

from placement.models import Cycle

_TRIES = 4  # SQLite gives up waiting for its one write lock after some seconds, and is not fair to who waits
_line = threading.Lock()


def ensure() -> None:
    """Make the one row if it is not there yet."""
    Cycle.objects.get_or_create(pk=1)


@contextmanager
def in_line() -> Iterator[None]:
    """Wait for this process's other threads before SQLite's write lock is asked for.

    SQLite lets those who wait sleep and try again, in no order: of many threads some would wait for seconds.
    """
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        yield
        return
    with _line:
        yield


@contextmanager
def changing() -> Iterator[None]:
    """Run a block as one transaction that holds the cycle row and asks for a new cycle.

    On SQLite every transaction is IMMEDIATE, so the write lock is held from its first statement; on PostgreSQL the
    UPDATE takes the row lock. A second caller waits for the first.
    """
    with ExitStack() as stack:
        stack.enter_context(in_line())
        _begin(stack)
        updated = Cycle.objects.filter(pk=1).update(wanted=F("wanted") + 1)
        if updated == 0:
            Cycle.objects.create(pk=1, wanted=1)
        yield


def _begin(stack: ExitStack) -> None:
    """Open the transaction; where only the wait for the lock ran out, nothing has happened and it is tried again."""
    for left in reversed(range(_TRIES)):
        try:
            stack.enter_context(transaction.atomic())
            return
        except OperationalError as error:
            if not left or connection.in_atomic_block or "locked" not in str(error):
                raise
