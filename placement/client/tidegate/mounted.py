"""HTTP over a socket in the file system: a job in a container reaches the service by one, whatever network it has."""

from __future__ import annotations

import http.client
import os
import socket
import time
import urllib.request
from typing import Any

_LONGEST = 100  # bytes of an address
_AGAIN_S = 0.05


def handler(path: str) -> urllib.request.HTTPHandler:
    """Return what has an opener of urllib use the socket for every http address."""

    class Connection(http.client.HTTPConnection):
        def connect(self) -> None:
            self.sock = _dial(path, self.timeout)

    class Handler(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Connection, req)

    return Handler()


def _dial(path: str, timeout: Any) -> socket.socket:
    dialled = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    dialled.settimeout(timeout)
    try:
        if len(os.fsencode(path)) <= _LONGEST:
            _connect(dialled, path)
        else:
            _connect_below(dialled, path)
    except OSError:
        dialled.close()
        raise
    return dialled


def _connect(dialled: socket.socket, address: str) -> None:
    """Connect; where too many wait in line before us, which is said at once, try again until the time is over."""
    over = time.monotonic() + (dialled.gettimeout() or 0)
    while True:
        try:
            return dialled.connect(address)
        except BlockingIOError:
            if time.monotonic() >= over:
                raise
            time.sleep(_AGAIN_S)


def _connect_below(dialled: socket.socket, path: str) -> None:
    """Connect by the folder that is held open: a path may be longer than an address."""
    directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        _connect(dialled, f"/proc/self/fd/{directory}/{os.path.basename(path)}")
    finally:
        os.close(directory)
