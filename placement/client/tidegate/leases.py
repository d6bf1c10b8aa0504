"""Lets go of leases: when the last reference drops, at the end of a ``with``, at the end of the process.

A finaliser may run at any line of any thread, so it only puts a letter into a queue; a thread of its own sends it, and
again where the service does not answer. Only the process that was granted a lease gives it back: a forked child holds a
description.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
import time
import weakref
from typing import Any

from .errors import Unavailable
from .process import identity
from .service import NoAnswer, Service

AT_EXIT = 3.0  # seconds in which what is left is given back; then the service notices that the process is gone
AGAIN = 1.0  # seconds between two tries


class Lease:
    """The right to the bytes of one grant, shared by its group and all members, for as long as one of them lives."""

    def __init__(self, number: int, service: Service) -> None:
        self.number = number
        self.service = service
        self.pid = os.getpid()
        self.revoked = ""
        self.entered = 0
        _live.add(self)
        self._finaliser = weakref.finalize(self, send, service, f"leases/{number}/release", {}, self.pid)
        self._finaliser.atexit = False

    @property
    def mine(self) -> bool:
        """Return whether this process was granted it; a forked child has it from its parent."""
        return self.pid == os.getpid()

    @property
    def held(self) -> bool:
        """Return whether it still stands, as far as this process knows."""
        return self._finaliser.alive and not self.revoked

    def let_go(self) -> None:
        """Give it back now, once; in a forked child nothing happens."""
        # Called itself, a finaliser does nothing any more once Python has run those that end with the process.
        if self.mine and self._finaliser.detach() is not None:
            send(self.service, f"leases/{self.number}/release", {}, self.pid)

    def lost(self, sentence: str) -> None:
        """Note that the service took it back; that nothing here uses it any more is told all the same."""
        self.revoked = sentence or "It was revoked."

    def __copy__(self) -> Lease:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Lease:
        return self

    def __reduce__(self) -> str:
        raise TypeError("A lease stays in the process that was granted it.")


class _Letters:
    """The queue of what is to be given back, and its thread, both of this process."""

    def __init__(self) -> None:
        self.fresh()

    def fresh(self) -> None:
        self.waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.thread: threading.Thread | None = None
        self.start = threading.Lock()
        self.closing = False

    def ready(self) -> None:
        """Start the thread, before there is anything that a finaliser could send."""
        with self.start:
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="tidegate-leases", daemon=True)
                self.thread.start()

    def _run(self) -> None:
        while True:
            letter = self.waiting.get()
            if letter is None:
                return
            while not _sent(*letter) and not self.closing:
                time.sleep(AGAIN)

    def close(self) -> None:
        """Give back all that this process still has, for some seconds."""
        for lease in list(_live):
            lease.let_go()
        self.closing = True
        self.waiting.put(None)
        if self.thread is not None:
            self.thread.join(AT_EXIT)


def send(service: Service, path: str, body: dict[str, Any], pid: int) -> None:
    """Have it told to the service by and by, if this is still the process that means it."""
    if pid == os.getpid():
        _letters.waiting.put((service, path, body))


def _sent(service: Service, path: str, body: dict[str, Any]) -> bool:
    """Send one letter; True when the service knows, or never will."""
    try:
        service.post(path, {**body, "process": identity()})
    except NoAnswer:
        return False
    except Unavailable:  # it is gone already, or this job is
        return True
    return True


def of_session(numbers: set[int]) -> list[Lease]:
    """Return the live leases with these numbers."""
    return [lease for lease in list(_live) if lease.number in numbers]


_live: weakref.WeakSet[Lease] = weakref.WeakSet()
_letters = _Letters()
ready = _letters.ready
atexit.register(_letters.close)
os.register_at_fork(after_in_child=_letters.fresh)
