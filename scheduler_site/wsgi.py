"""What the web server calls. The body of a request comes whole, or the request fails."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_site.settings")
_django = get_wsgi_application()


class CutOff(OSError):
    """The other side was gone, or too slow, before the whole body was here."""


class Body:
    """A body of a known length: its end before that is an error.

    The server just ends it there, and Django takes a form that was cut off for a whole one: half a command is another
    command.
    """

    def __init__(self, stream: Any, length: int) -> None:
        self._stream, self._left = stream, length

    def read(self, size: int = -1) -> bytes:
        """Return so many bytes, fewer only at the end of the whole body."""
        wanted = self._left if size < 0 else min(size, self._left)
        return self._taken(self._stream.read(wanted), wanted)

    def readline(self, size: int = -1) -> bytes:
        """Return a line, or its part of this size."""
        return self._taken(self._stream.readline(self._left if size < 0 else min(size, self._left)), min(1, self._left))

    def _taken(self, data: bytes, least: int) -> bytes:
        self._left -= len(data)
        if len(data) < least:
            raise CutOff(f"the request ended {self._left:,} bytes before its end")
        return data


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Serve one request."""
    length = environ.get("CONTENT_LENGTH") or ""
    if length.isdecimal():
        environ["wsgi.input"] = Body(environ["wsgi.input"], int(length))
    return _django(environ, start_response)
