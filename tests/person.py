"""A person at the service: logs in as a browser would, then speaks to the API or reads pages."""

from __future__ import annotations

import http.cookiejar
import json
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from tests.wait import until


class Refusal(Exception):
    """The service answered with an error; ``status`` and ``body`` are what it said."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


class Person:
    """One logged-in person with their own cookies."""

    def __init__(self, address: str, link: str) -> None:
        self.address = address.rstrip("/")
        self.cookies = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        page = self.read(link)
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token, f"no form on {link}: {page[:300]}"
        self.send(link, urllib.parse.urlencode({"csrfmiddlewaretoken": token[1]}).encode())

    def read(self, path: str, headers: dict[str, str] | None = None) -> str:
        """Return the body of a page."""
        with self._open(path, None, headers or {}) as answer:
            return str(answer.read().decode("utf-8", "replace"))

    def send(self, path: str, body: bytes, headers: dict[str, str] | None = None) -> str:
        """Post a form body; the token is taken from the cookie."""
        url = self._url(path)
        given = {"X-CSRFToken": self.token(), "Referer": url, **(headers or {})}
        with self._open(path, body, given) as answer:
            return str(answer.read().decode("utf-8", "replace"))

    def token(self) -> str:
        """Return the CSRF token of this session."""
        return next((c.value or "" for c in self.cookies if "csrf" in c.name), "")

    def call(self, path: str, body: Any = None) -> Any:
        """Return what the API answers: GET without a body, else POST. Raise Refusal on an error."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "X-CSRFToken": self.token(), "Referer": self._url(path)}
        with self._open(path, data, headers) as answer:
            return json.loads(answer.read())

    def submit(self, command: str, **fields: Any) -> int:
        """Submit a typed command and return its job's id."""
        return int(self.call("/api/v1/jobs", {"command": command, "cwd": "/tmp", **fields})["job"]["id"])

    def job(self, job_id: int) -> dict[str, Any]:
        """Return one job as the API shows it."""
        return dict(self.call(f"/api/v1/jobs/{job_id}")["job"])

    def wait_for(self, job_id: int, state: str, timeout: float = 40.0) -> dict[str, Any]:
        """Return the job once it is in a state."""

        def there() -> dict[str, Any] | None:
            job = self.job(job_id)
            return job if job["state"] == state else None

        try:
            return until(there, timeout, f"#{job_id} to be {state}", interval=0.1)
        except AssertionError as error:
            job = self.job(job_id)
            raise AssertionError(f"{error}; it is {job['state']}: {job['sentence'] or job['headline']}") from None

    def _url(self, path: str) -> str:
        return path if path.startswith("http") else self.address + path

    def _open(self, path: str, body: bytes | None, headers: dict[str, str]) -> Any:
        request = urllib.request.Request(self._url(path), data=body, headers=headers)
        try:
            return self.opener.open(request, timeout=30)
        except urllib.error.HTTPError as error:
            with error:
                text = error.read().decode("utf-8", "replace")
            try:
                raise Refusal(error.code, json.loads(text)) from error
            except ValueError:
                raise Refusal(error.code, text[:500]) from error


def sign_in(service: Any, name: str = "admin") -> Person:
    """Return somebody logged in by a fresh one-time link of a running service (tests.service.LiveService)."""
    return Person(service.address, login_link(service, name))


def login_link(service: Any, name: str = "admin") -> str:
    """Return a fresh one-time link."""
    done = service.manage("login_link", name, "--address", service.address)
    link = re.search(r"http\S+/login/link/\S+", done.stdout + done.stderr)
    assert link, done
    return link[0]
