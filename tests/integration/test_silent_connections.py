"""Connections that say nothing keep nobody waiting: browsers open some ahead of what they will ask."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from tests.service import REPOSITORY
from tests.wait import until

SILENT_S = 3.0  # seconds; the product's own are longer
STALLED_S = 1
SAYS = f"""
from scheduler_site import webserver
webserver.SILENT_S, webserver.STALLED_S = {SILENT_S}, {STALLED_S}
def app(environ, start):
    start("200 OK", [])
    return [b"here"]
"""
THREADS = 2
HOLDS = 5.0  # seconds for which gunicorn's own worker waits for a new connection's first byte


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """Serve one word with the product's worker and two threads."""
    folder = tmp_path_factory.mktemp("web")
    (folder / "says.py").write_text(SAYS)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number = listener.fileno()
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gunicorn", "says:app", "--bind", f"fd://{number}", "-w", "1"),
                *("-k", "scheduler_site.webserver.Worker", "--threads", str(THREADS), "--no-control-socket"),
                *("--pythonpath", str(folder), "--log-level", "error"),
            ],
            cwd=REPOSITORY,
            pass_fds=(number,),
        )
        try:
            where: tuple[str, int] = listener.getsockname()
            until(lambda: asked(socket.create_connection(where, timeout=20)), 20, "the server to answer")
            yield where
        finally:
            process.terminate()
            process.wait(20)


def asked(connection: socket.socket) -> bool:
    """Ask over a connection and return whether the word came."""
    with connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        said = b""
        while more := connection.recv(4096):
            said += more
        return b"here" in said


def test_more_silent_connections_than_threads_keep_nobody_waiting(server: tuple[str, int]) -> None:
    silent = [socket.create_connection(server, timeout=20) for _ in range(3 * THREADS)]
    began = time.monotonic()
    try:
        assert asked(socket.create_connection(server, timeout=20))
        assert time.monotonic() - began < HOLDS - 1, "it waited for connections that said nothing"
        assert all(asked(one) for one in silent), "what was silent at first is answered when it asks"
    finally:
        for one in silent:
            one.close()


def test_a_connection_that_stays_silent_is_closed(server: tuple[str, int]) -> None:
    with socket.create_connection(server, timeout=20) as silent:
        began = time.monotonic()
        assert silent.recv(1) == b""
        assert time.monotonic() - began > SILENT_S / 2, "it had no time to ask"


def test_requests_that_are_never_finished_hold_no_thread_for_ever(server: tuple[str, int]) -> None:
    begun = [socket.create_connection(server, timeout=20) for _ in range(THREADS)]
    try:
        for one in begun:
            one.sendall(b"POST / HTTP/1.1\r\nHost: ")
        assert asked(socket.create_connection(server, timeout=20)), "nobody was answered any more"
    finally:
        for one in begun:
            one.close()
