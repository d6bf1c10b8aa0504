"""The cycle row: locked first by whoever changes queue, leases, holds or declarations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.db.models import F

from placement.models import Cycle


def ensure() -> None:
    """Make the one row if it is not there yet."""
    Cycle.objects.get_or_create(pk=1)


@contextmanager
def changing() -> Iterator[None]:
    """Run a block as one transaction that holds the cycle row and asks for a new cycle.

    On SQLite every transaction is IMMEDIATE, so the write lock is held from its first statement; on PostgreSQL the
    UPDATE takes the row lock. A second caller waits for the first.
    """
    with transaction.atomic():
        updated = Cycle.objects.filter(pk=1).update(wanted=F("wanted") + 1, version=F("version") + 1)
        if updated == 0:
            Cycle.objects.create(pk=1, wanted=1, version=1)
        yield
