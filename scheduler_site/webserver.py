"""What gunicorn calls: a worker whose threads wait for nobody, and which does not outlive the server that accepts."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from functools import partial
from typing import Any

from gunicorn.workers import gthread

from scheduler_site import deathsignal

SILENT_S = 10.0  # for so long a new connection may say nothing: it costs a descriptor
STALLED_S = 10  # for so long one that has begun a request may say nothing more: it costs a thread


class Worker(gthread.ThreadWorker):  # type: ignore[misc]  # it has no types
    """Gunicorn's threads, but a connection gets one only once it has said something.

    As it comes, each new connection holds one of the threads for up to five seconds until its first byte: browsers open
    connections ahead of what they will ask, and a few of those would keep everybody else waiting. One that stops in the
    middle of a request (a laptop that was shut) would hold its thread for ever; it is closed.
    """

    def enqueue_req(self, conn: Any) -> None:
        """Hand a connection to a thread; a new one when it becomes readable, or to nobody where it stays silent."""
        if conn.initialized or conn.data_ready:
            super().enqueue_req(conn)
            return
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", STALLED_S, 0))
        conn.timeout = time.monotonic() + SILENT_S
        self.pending_conns.append(conn)  # in the order of their timeouts: all wait as long
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))


def post_fork(server: Any, worker: Any) -> None:
    """In the new worker: end at once when the server is killed, instead of when the last request is answered."""
    deathsignal.die_with_parent(server.pid)
