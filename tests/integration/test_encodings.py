"""A request may name any encoding; only UTF-8 is taken, and nothing fails by another."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from placement.models import Role
from tests.integration.rows import a_machine, a_user

pytestmark = pytest.mark.django_db

FORM = "application/x-www-form-urlencoded"
ODD = ["latin-1", "utf-7", "utf-16", "base64", "rot13", "idna", "punycode", "zip"]


@pytest.fixture
def client() -> Client:
    a_machine()
    made = Client(raise_request_exception=False, enforce_csrf_checks=True)
    made.force_login(a_user("root", Role.ADMIN))
    return made


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", [FORM, "multipart/form-data; boundary=x"])
def test_a_form_in_another_encoding_is_refused_with_its_name(client: Client, kind: str, odd: str) -> None:
    for path in ("/submit", "/login", "/jobs/bulk", "/no/such/page"):
        answer = client.generic("POST", path, b"command=%ff", content_type=f"{kind}; charset={odd}")
        assert answer.status_code == 415, path
        assert f"said to be in {odd}" in answer.content.decode()


@pytest.mark.parametrize("odd", ODD)
def test_elsewhere_an_encoding_changes_nothing(client: Client, odd: str) -> None:
    named: dict[str, Any] = {"content_type": f"text/plain; charset={odd}"}
    assert client.get("/jobs/", {"q": "\xff"}, **named).status_code == 200
    assert client.get("/api/v1/jobs", {"q": "\xff"}, **named).status_code == 200
    assert client.generic("POST", "/api/v1/jobs", b"a=%ff", content_type=f"{FORM}; charset={odd}").status_code < 500


def test_utf_8_by_any_of_its_names_is_taken(client: Client) -> None:
    for name in ("UTF-8", "utf8", "us-ascii"):
        said = client.generic("POST", "/login", b"username=a&password=b", content_type=f"{FORM}; charset={name}")
        assert said.status_code == 403, "the check of its CSRF token comes next"
