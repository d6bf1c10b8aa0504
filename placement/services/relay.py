"""How a job in a container reaches the service: a socket in a folder that is mounted, whatever network it has.

A container's 127.0.0.1 is its own, so the node's loop listens on a socket in the file system and hands on what comes.
It opens nothing that another program of this machine could not ask for, and the token decides as everywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

log = logging.getLogger(__name__)
SOCKET = "TIDEGATE_SOCKET"
_NAME = "socket"
_LONGEST_S = 60.0  # of one connection; the client waits for ten seconds at most
_SILENT_S = 10.0  # until a connection has said something; only then is the service asked for one
_MOST = 192  # connections at once, of two descriptors each: the worker has a thousand or more
_AT_ONCE = 64  # are accepted in one go
_IN_LINE = 1024  # may wait to be accepted
_CHUNK = 1 << 16
_AWAY = b'{"sentence": "The node of this job does not reach the service at the moment."}'
_NO_SERVICE = b"HTTP/1.0 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"


def folder() -> Path:
    """Return the folder that is mounted; a restart makes the socket in it anew, so the socket alone would go stale."""
    place: Path = settings.DATA / "inside"
    place.mkdir(mode=0o755, parents=True, exist_ok=True)
    place.chmod(0o755)
    return place


def variables() -> dict[str, str]:
    """Return what a container is told of the service. TLS, where the address has it, is spoken out here."""
    return {"TIDEGATE_URL": f"http://{urlsplit(settings.URL).netloc}", SOCKET: str(folder() / _NAME)}


class Relay:
    """The thread that listens; made again where it died or its socket was removed."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._told = ""

    def stand(self) -> None:
        """Listen, if containers may run here and there is an address to hand on to."""
        if self._thread is not None and self._thread.is_alive() and os.path.lexists(settings.DATA / "inside" / _NAME):
            return
        try:
            listener = _listen(folder())
        except OSError as error:
            if str(error) != self._told:
                log.warning("containers cannot ask for more: %s", error, extra={"action": "no_relay"})
            self._told = str(error)
            return
        self._thread = threading.Thread(target=_run, args=(listener, settings.URL), daemon=True, name="relay")
        self._thread.start()


def _listen(place: Path) -> socket.socket:
    """Return a socket that every account may connect to, in the place of one that another process left."""
    listener = socket.socket(socket.AF_UNIX)
    directory = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fresh = f".{os.getpid()}-{threading.get_native_id()}"
    short = f"/proc/self/fd/{directory}/{fresh}"  # an address holds 108 bytes, a path may be longer
    try:
        (place / fresh).unlink(missing_ok=True)
        listener.bind(short)
        os.chmod(short, 0o666)
        listener.listen(_IN_LINE)
        (place / fresh).replace(place / _NAME)
    except OSError:
        listener.close()
        raise
    finally:
        os.close(directory)
    listener.setblocking(False)
    return listener


def _run(listener: socket.socket, url: str) -> None:
    with listener:
        asyncio.run(_serve(listener, url))


async def _serve(listener: socket.socket, url: str) -> None:
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    host, port = parts.hostname or "127.0.0.1", parts.port or (443 if secure else 80)
    there: dict[asyncio.Task[None], None] = {}  # the one that came first is first

    async def hand(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection; for one too many the oldest goes: an honest one takes a moment, so it is none."""
        own = asyncio.current_task()
        assert own is not None
        if len(there) >= _MOST:
            oldest = next(iter(there))
            del there[oldest]
            oldest.cancel()
        there[own] = None
        try:
            with contextlib.suppress(OSError, TimeoutError, asyncio.CancelledError):
                async with asyncio.timeout(_LONGEST_S):
                    await _through(reader, writer, host, port, secure)
                    writer.close()
                    await writer.wait_closed()
        finally:
            there.pop(own, None)
            writer.transport.abort()  # else what nobody reads would keep it open

    server = await asyncio.start_unix_server(hand, sock=listener, backlog=_AT_ONCE)
    listener.listen(_IN_LINE)
    await server.serve_forever()


async def _through(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int, secure: bool
) -> None:
    async with asyncio.timeout(_SILENT_S):
        first = await reader.read(_CHUNK)
    if not first:
        return
    try:
        back, on = await asyncio.open_connection(host, port, ssl=secure or None)
    except OSError:
        writer.write(_NO_SERVICE % (len(_AWAY), _AWAY))
        await writer.drain()
        return
    on.write(first)
    asking = asyncio.create_task(_pump(reader, on))
    try:
        await _pump(back, writer)
    finally:
        asking.cancel()
        on.transport.abort()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Hand on what comes, and that nothing more comes."""
    with contextlib.suppress(OSError):
        while part := await source.read(_CHUNK):
            sink.write(part)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()
