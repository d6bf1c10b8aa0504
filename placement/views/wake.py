"""Wake the gate after a change, so that nobody waits for the next second."""

from __future__ import annotations

import logging

from django.db import transaction

log = logging.getLogger(__name__)


def soon() -> None:
    """Wake every node once the current transaction is committed (at once where there is none)."""
    transaction.on_commit(_wake)


def _wake() -> None:
    try:
        from placement.wakes import wake_all

        wake_all()
    except Exception:  # the next tick comes within a second anyway; a person's change must not fail for it
        log.warning("The gate could not be woken; it looks again by itself.", exc_info=True)
