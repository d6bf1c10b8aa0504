"""A reading that may never return must not stop the loop that asked for it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Guarded(Generic[T]):
    """Runs ``read`` in one thread of its own; there is never more than one call in flight.

    ``error`` is the sentence of the last call that raised, empty after one that did not.
    """

    def __init__(self, read: Callable[[], T], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._turn = threading.Condition()
        self._asked = 0
        self._done = 0
        self._began = 0.0
        self._value: T | None = None
        self._at: float | None = None
        self._thread: threading.Thread | None = None
        self.error = ""

    def look(self, timeout_s: float) -> tuple[T | None, float | None, bool]:
        """Return (last good value, its age in seconds, stuck), waiting at most ``timeout_s`` for a new one.

        A call left hanging by an earlier look is not waited for again, so a stuck driver delays one look
        only. The age counts from the moment at which the call began: what it found may be that old.
        """
        if self._pid != os.getpid():  # threads and held locks do not come along through a fork
            self._start()
        with self._turn:
            hanging = self._done < self._asked
            if not hanging:
                self._asked += 1
                self._began = self._clock()
                if self._thread is None:
                    self._thread = threading.Thread(target=self._serve, name="device-reading", daemon=True)
                    self._thread.start()
                self._turn.notify_all()
                self._turn.wait_for(lambda: self._done == self._asked, timeout_s)
            age = None if self._at is None else max(0.0, self._clock() - self._at)
            return self._value, age, self._done < self._asked

    def _serve(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._done < self._asked)
            error, value = "", None
            try:
                value = self._read()
            except Exception as caught:  # whatever a driver's library raises is an answer
                error = f"{type(caught).__name__}: {caught}"
            with self._turn:
                self.error = error
                if not error:
                    self._value, self._at = value, self._began
                self._done = self._asked
                self._turn.notify_all()
