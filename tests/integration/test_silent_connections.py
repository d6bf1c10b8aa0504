"""Connections that say nothing keep nobody waiting: browsers open some ahead of what they will ask."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.machine_pace import slowness
from tests.service import REPOSITORY
from tests.wait import until

SILENT_S = 3.0  # seconds; the product's own are longer
SLOW_S = 1.0
SAYS = f"""
from scheduler_site import webserver
webserver.SILENT_S = {SILENT_S}
webserver.HEAD_S = webserver.BODY_S = webserver.UNREAD_S = {SLOW_S}
def app(environ, start):
    environ["wsgi.input"].read()
    start("200 OK", [])
    return (b"x" * 65536 for _ in range(1600)) if environ["PATH_INFO"] == "/much" else [b"here"]
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


@pytest.mark.parametrize(
    ("begun", "goes_on"),
    [
        (b"POST / HTTP/1.1\r\nHost: ", b""),
        (b"POST / HTTP/1.1\r\nHost: ", b"a"),
        (b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 100000\r\n\r\n", b"a"),
        (b"GET /much HTTP/1.1\r\nHost: here\r\n\r\n", b""),
    ],
    ids=["half a head", "a head by bytes", "a body by bytes", "an answer that nobody reads"],
)
def test_who_stops_half_way_or_goes_on_by_bytes_holds_no_thread_for_ever(
    server: tuple[str, int], begun: bytes, goes_on: bytes
) -> None:
    clients = [socket.create_connection(server, timeout=20) for _ in range(THREADS)]
    over = threading.Event()

    def go_on() -> None:
        while goes_on and not over.wait(0.2):
            for one in clients:
                with suppress(OSError):
                    one.sendall(goes_on)

    byte_by_byte = threading.Thread(target=go_on)
    try:
        for one in clients:
            one.sendall(begun)
        byte_by_byte.start()
        assert asked(socket.create_connection(server, timeout=20)), "nobody was answered any more"
    finally:
        over.set()
        byte_by_byte.join()
        for one in clients:
            one.close()


def test_who_was_answered_and_stays_connected_keeps_nobody_waiting(server: tuple[str, int]) -> None:
    stay = [socket.create_connection(server, timeout=20) for _ in range(5)]
    try:
        for one in stay:
            one.sendall(b"GET / HTTP/1.0\r\nHost: here\r\n\r\n")
            assert one.recv(9) == b"HTTP/1.0 "
        began = time.monotonic()
        assert asked(socket.create_connection(server, timeout=20))
        took = time.monotonic() - began
        assert took < 1.5 * slowness(), "it waited until others closed"
        stay[0].settimeout(20)
        while stay[0].recv(4096):
            pass
        until(lambda: _refused(stay[0]), 20, "what was answered and stays open to be closed")
    finally:
        for one in stay:
            one.close()


def _refused(connection: socket.socket) -> bool:
    try:
        connection.sendall(b"more")
    except OSError:
        return True
    return False
