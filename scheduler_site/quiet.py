"""The same trouble is told once a minute, however often it comes: a full disk must not be filled by saying so."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable

QUIET_S = 60.0
_MOST_KINDS = 500


class OnceAMinute(logging.Filter):
    """Lets a warning or an error through, and its repetitions only after a minute, with how many there were.

    What carries an exception is the same where the exception is, whichever task or thread met it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._said: dict[Hashable, float] = {}
        self._held: dict[Hashable, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is to be written."""
        if record.levelno < logging.WARNING:
            return True
        now, kind = self._clock(), _kind(record)
        if kind in self._said and now - self._said[kind] < QUIET_S:
            self._held[kind] = self._held.get(kind, 0) + 1
            return False
        if len(self._said) >= _MOST_KINDS:
            self._said = {k: at for k, at in self._said.items() if now - at < QUIET_S}
            self._held = {k: count for k, count in self._held.items() if k in self._said}
        self._said[kind] = now
        held = self._held.pop(kind, 0)
        if held:
            record.msg, record.args = f"{record.getMessage()} (and {held} times more since it was last told)", None
        return True


def _kind(record: logging.LogRecord) -> Hashable:
    error = record.exc_info[1] if record.exc_info else None
    told = record.getMessage() if error is None else f"{type(error).__name__}: {error}"
    return record.name, record.levelno, told[:500]
