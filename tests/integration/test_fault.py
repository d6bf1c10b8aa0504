"""A page that cannot be made says why where the database is away, whoever asks and whatever is read first."""

from __future__ import annotations

import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.db import OperationalError
from django.test import Client

from placement.models import Role
from placement.selectors import kept
from tests.integration.rows import a_user

pytestmark = pytest.mark.django_db
SAID = "connection refused"


@pytest.fixture
def visitor(client: Client, monkeypatch: pytest.MonkeyPatch) -> Client:
    client.force_login(a_user("ada", Role.ADMIN))
    client.raise_request_exception = False
    monkeypatch.setattr(kept.Kept, "get", lambda self, key, build: build())
    return client


def fail_with(monkeypatch: pytest.MonkeyPatch, problem: Exception) -> None:
    def load(self: SessionStore) -> None:
        raise problem

    monkeypatch.setattr(SessionStore, "load", load)


@pytest.mark.parametrize("path", ["/", "/jobs/1", "/people", "/admin/", "/login"])
def test_without_a_database_pages_say_so(visitor: Client, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    fail_with(monkeypatch, OperationalError(SAID))
    answer = visitor.get(path)
    assert answer.status_code == 503
    assert SAID in answer.content.decode()
    part = visitor.get(path, headers={"HX-Request": "true"})
    assert part.status_code == 503
    assert "<html" not in part.content.decode()


def test_a_fault_of_ours_tells_nothing_of_itself(visitor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(monkeypatch, RuntimeError(SAID))
    answer = visitor.get("/")
    assert answer.status_code == 500
    assert SAID not in answer.content.decode()
