"""A request whose body did not come whole does nothing: half a command is another command."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from placement.models import Role
from scheduler_site import wsgi
from tests.integration.rows import a_user

pytestmark = pytest.mark.django_db


def sent(client: Client, path: str, body: bytes, kind: str) -> tuple[int, bytes]:
    """Send a body that ends four bytes before its told length; return the status and the answer."""
    length = len(body) + 4
    stream: Any = {"wsgi.input": wsgi.Body(io.BytesIO(body), length)}
    answer = client.generic("POST", path, body, kind, CONTENT_LENGTH=str(length), **stream)
    return answer.status_code, answer.content


@pytest.fixture
def client() -> Client:
    made = Client(raise_request_exception=False)
    made.force_login(a_user("ann", Role.SUBMITTER))
    return made


def form(parts: dict[str, str]) -> bytes:
    lines = [
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in parts.items()
    ]
    return "".join(lines).encode()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"command=rm+-rf+/data", "application/x-www-form-urlencoded"),
        (form({"command": "rm -rf /data"}), "multipart/form-data; boundary=x"),
    ],
    ids=["urlencoded", "multipart"],
)
def test_a_form_that_was_cut_off_does_nothing(client: Client, body: bytes, kind: str) -> None:
    status, answer = sent(client, reverse("submit"), body, kind)
    assert status == 400, answer
    assert b"ended in the middle" in answer


def test_a_body_of_the_api_that_was_cut_off_does_nothing(client: Client) -> None:
    body = b'{"command": "true"}'
    status, answer = sent(client, "/api/v1/jobs", body, "application/json")
    assert status == 400, answer
    assert b"ended in the middle" in answer


def test_every_request_is_read_so(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(wsgi, "_django", lambda environ, _: seen.append(environ["wsgi.input"]) or [])
    wsgi.application({"wsgi.input": io.BytesIO(b"a=1\nb"), "CONTENT_LENGTH": "9"}, None)
    assert seen[0].readline() == b"a=1\n"
    with pytest.raises(wsgi.CutOff, match="4 bytes before its end"):
        seen[0].read()
    whole = wsgi.Body(io.BytesIO(b"a=1\nb"), 5)
    assert whole.read(4) + whole.read() + whole.read() + whole.readline() == b"a=1\nb"
