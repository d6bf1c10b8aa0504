"""Talks to the service over HTTP with the job's own token. Nothing is redirected, and no proxy gets the token."""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from . import mounted
from .errors import NotAllowed, Unavailable

ANSWERED_WITHIN = 10.0  # seconds; the service answers at once, so this is for one that is gone
LARGEST_ANSWER = 4 << 20  # bytes
PASSING = frozenset({408, 425, 429})


class NoAnswer(Unavailable):
    """The service could not be reached, or has trouble of its own: it may be asked again."""


class Refused(Unavailable):
    """The service does not take what was said; saying it again would not help."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class Service(NamedTuple):
    """Where a job finds the service, and how it proves which job it is."""

    url: str
    token: str
    job: str
    socket: str = ""  # the path of one that leads there: in a container, which has a 127.0.0.1 of its own

    def post(self, path: str, body: dict[str, Any], within: float = ANSWERED_WITHIN) -> dict[str, Any]:
        return self._call("POST", path, json.dumps(body).encode(), within)

    def get(self, path: str, within: float = ANSWERED_WITHIN) -> dict[str, Any]:
        return self._call("GET", path, None, within)

    def _call(self, method: str, path: str, body: bytes | None, within: float) -> dict[str, Any]:
        address = f"{self.url.rstrip('/')}/api/v1/inside/{path}"
        where = f"{address}, by the socket {self.socket}," if self.socket else address
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(address, data=body, headers=headers, method=method)
        try:
            with _opener(self.socket).open(request, timeout=within) as answer:
                text = answer.read(LARGEST_ANSWER)
        except urllib.error.HTTPError as error:
            with error:
                raise _told(error, address) from None
        except (OSError, ValueError, http.client.HTTPException) as error:  # refused, timed out, cut off in the middle
            raise NoAnswer(f"{where} does not answer: {getattr(error, 'reason', error)}") from None
        try:
            found = json.loads(text) if text else {}
        except ValueError:
            raise NoAnswer(f"{address} answered with what is no JSON.") from None
        if not isinstance(found, dict):
            raise NoAnswer(f"{address} answered with {type(found).__name__} in place of an object.")
        return found


def found(environment: dict[str, str] | None = None) -> Service | None:
    """Return the service of the job in which this process runs; None outside a job."""
    env = os.environ if environment is None else environment
    url, token = env.get("TIDEGATE_URL", ""), env.get("TIDEGATE_TOKEN", "")
    if not url or not token:
        return None
    if not url.lower().startswith(("http://", "https://")):
        raise NotAllowed(f"TIDEGATE_URL is {url!r}; it begins with http:// or https://.")
    return Service(url, token, env.get("TIDEGATE_JOB_ID", ""), env.get("TIDEGATE_SOCKET", ""))


class _Stays(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: another address has no business with the token."""

    def redirect_request(self, *args: Any, **more: Any) -> None:
        return None


_kept: dict[str, urllib.request.OpenerDirector] = {}


def _opener(socket: str) -> urllib.request.OpenerDirector:
    if socket not in _kept:
        through = [mounted.handler(socket)] if socket else []
        _kept[socket] = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stays, *through)
    return _kept[socket]


def _told(error: urllib.error.HTTPError, address: str) -> Unavailable:
    """Return an answer of 300 and above as what it means for who asked."""
    said = _sentence(error)
    if error.code in (401, 403):
        return NotAllowed(f"{address} does not let this job in ({error.code}){said}")
    if error.code >= 500 or error.code in PASSING:
        return NoAnswer(f"{address} answered {error.code}{said}")
    return Refused(f"{address} answered {error.code}{said}", error.code)


def _sentence(error: urllib.error.HTTPError) -> str:
    """Return ``: what it said``, or a full stop where it said nothing that can be read."""
    try:
        body = json.loads(error.read(LARGEST_ANSWER))
        said = body.get("sentence") or body.get("detail")
    except (OSError, ValueError, AttributeError, http.client.HTTPException):
        return "."
    return f": {said}" if said else "."
