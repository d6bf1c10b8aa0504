"""What gunicorn calls: a worker whose threads wait for nobody, and which does not outlive the server that accepts."""

from __future__ import annotations

import selectors
import socket
import time
from collections import deque
from contextlib import suppress
from functools import partial
from typing import Any

from gunicorn.workers import gthread

from scheduler_site import deathsignal

SILENT_S = 10.0  # for so long a new connection may say nothing: it costs a descriptor
HEAD_S = 10.0  # for so long the head of a request may take, however it comes: it costs a thread
BODY_S = 30.0  # for so long its body may
UNREAD_S = 30.0  # for so long nothing of an answer may be taken: that costs a thread, too
LINGER_S = 2.0  # for so long who was answered may leave the connection open: closed at once, an answer may be lost


class Worker(gthread.ThreadWorker):  # type: ignore[misc]  # it has no types
    """Gunicorn's threads, but a connection gets one only once it has said something, and only for so long.

    As it comes, each new connection holds one of the threads for up to five seconds until its first byte: browsers open
    connections ahead of what they will ask, and a few of those would keep everybody else waiting. One that stops in the
    middle of a request or of an answer (a laptop that was shut), or goes on byte by byte, would hold its thread for
    ever. And the one loop that gives connections to threads would wait two seconds for each that is answered and stays
    open.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._until: dict[Any, float] = {}  # monotonic seconds: when a request has to be whole, by connection
        self._lingering: deque[Any] = deque()  # answered, not closed by the other side yet; soonest first

    def enqueue_req(self, conn: Any) -> None:
        """Hand a connection to a thread; a new one when it becomes readable, or to nobody where it stays silent."""
        if conn.initialized or conn.data_ready:
            super().enqueue_req(conn)
            return
        if conn.sock.family in (socket.AF_INET, socket.AF_INET6):
            conn.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(UNREAD_S * 1000))
        conn.timeout = time.monotonic() + SILENT_S
        self.pending_conns.append(conn)  # in the order of their timeouts: all wait as long
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))

    def handle(self, conn: Any) -> Any:
        """Read a request and answer it, in a thread; its head has to come in time."""
        self._until[conn] = time.monotonic() + HEAD_S
        try:
            return super().handle(conn)
        finally:
            del self._until[conn]

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Answer a request whose head is here; its body has to come in time, and its answer has to be taken."""
        self._until[conn] = time.monotonic() + BODY_S
        try:
            return super().handle_request(req, conn)
        except TimeoutError:  # the kernel's word for an answer of which nothing was taken
            self.log.warning("An answer to %s was not taken for %g s; it was given up.", conn.client, UNREAD_S)
            return False

    def finish_request(self, conn: Any, fs: Any) -> None:
        """Put an answered connection back; one that is to be closed gets time to take the answer, but no waiting."""
        if not fs.cancelled() and fs.exception() is None and fs.result():
            super().finish_request(conn, fs)
            return
        try:
            conn.sock.shutdown(socket.SHUT_WR)
            conn.sock.setblocking(False)
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._drain, conn))
        except (OSError, ValueError):  # it is gone
            self._closed(conn)
            return
        conn.timeout = time.monotonic() + LINGER_S
        self._lingering.append(conn)

    def _drain(self, conn: Any, sock: Any) -> None:
        """Take what still comes after the answer, until the other side closes."""
        try:
            if sock.recv(65536):
                return
        except BlockingIOError:
            return
        except OSError:  # it was torn down: there is nothing more to wait for
            pass
        self._lingering.remove(conn)
        self.poller.unregister(sock)
        self._closed(conn)

    def _closed(self, conn: Any) -> None:
        self.nr_conns -= 1
        conn.close()

    def murder_pending(self) -> None:
        """Close what stayed silent or open for too long; of a request that takes too long nothing more is read."""
        super().murder_pending()
        now = time.monotonic()
        while self._lingering and self._lingering[0].timeout <= now:
            conn = self._lingering.popleft()
            self.poller.unregister(conn.sock)
            self._closed(conn)
        for conn, until in self._until.copy().items():
            if until <= now:
                with suppress(OSError):
                    conn.sock.shutdown(socket.SHUT_RD)  # whoever reads there sees its end; an answer still goes out


def post_fork(server: Any, worker: Any) -> None:
    """In the new worker: end at once when the server is killed, instead of when the last request is answered."""
    deathsignal.die_with_parent(server.pid)
