"""What gunicorn calls: a worker whose threads wait for nobody, and which does not outlive the server that accepts."""

from __future__ import annotations

import selectors
import time
from functools import partial
from typing import Any

from gunicorn.workers import gthread

from scheduler_site import deathsignal

SILENT_S = 10.0  # for so long a new connection may say nothing: it costs a descriptor


class Worker(gthread.ThreadWorker):  # type: ignore[misc]  # it has no types
    """Gunicorn's threads, but a connection gets one only once it has said something.

    As it comes, each new connection holds one of the threads for up to five seconds until its first byte: browsers open
    connections ahead of what they will ask, and a few of those would keep everybody else waiting.
    """

    def enqueue_req(self, conn: Any) -> None:
        """Hand a connection to a thread; a new one when it becomes readable, or to nobody where it stays silent."""
        if conn.initialized or conn.data_ready:
            super().enqueue_req(conn)
            return
        conn.timeout = time.monotonic() + SILENT_S
        self.pending_conns.append(conn)  # in the order of their timeouts: all wait as long
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))


def post_fork(server: Any, worker: Any) -> None:
    """In the new worker: end at once when the server is killed, instead of when the last request is answered."""
    deathsignal.die_with_parent(server.pid)
