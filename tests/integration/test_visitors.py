"""Who asks is read once per session while nothing is committed; what is committed counts at once."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from placement.models import Member, Role
from placement.selectors import kept
from tests.integration import databases
from tests.integration.rows import a_machine, a_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Client):
    """Return somebody logged in, on a database in a file as services have."""
    with databases.on(f"sqlite:///{tmp_path}/base.sqlite3", monkeypatch):
        a_machine()
        user = a_user("ada", Role.VIEWER)
        client.force_login(user)
        yield user


def queries(client: Client) -> int:
    with CaptureQueriesContext(connection) as asked:
        assert client.get("/api/v1/queue").status_code == 200
    return len(asked)


def test_a_second_request_asks_the_database_nothing(client: Client, ada) -> None:
    first = queries(client)
    assert first > 5
    assert min(queries(client) for _ in range(3)) == 0  # one in three at least is within the second of the one before
    a_user("bob")
    assert queries(client) > 5


@pytest.mark.parametrize(
    "change",
    [
        lambda user: get_user_model().objects.filter(pk=user.pk).update(is_active=False),
        lambda user: Session.objects.all().delete(),
        lambda user: get_user_model().objects.filter(pk=user.pk).update(password="another"),
    ],
    ids=["kept out", "session deleted", "new password"],
)
def test_who_may_not_come_in_any_more_is_out_at_once(client: Client, ada, change) -> None:
    assert queries(client) > 0
    queries(client)
    change(ada)
    assert client.get("/api/v1/queue").status_code == 401


def test_a_new_role_counts_at_once(client: Client, ada) -> None:
    assert client.get("/people").status_code == 403
    Member.objects.filter(user=ada).update(role=Role.ADMIN.value)
    assert client.get("/people").status_code == 200


def test_sessions_are_told_apart_and_a_logout_is_one(client: Client, ada) -> None:
    other = Client()
    other.force_login(a_user("bob", Role.VIEWER))
    for _ in range(3):
        assert (b"ada" in client.get("/").content, b"bob" in other.get("/").content) == (True, True)
    other.post("/logout")
    assert other.get("/").status_code == 302
    assert client.get("/").status_code == 200


def test_a_cookie_that_means_nothing_is_nobody(client: Client, ada) -> None:
    for number in itertools.islice(itertools.count(10**8), 3):
        stranger = Client()
        stranger.cookies["tidegate_session"] = f"{number:032d}"
        assert stranger.get("/api/v1/queue").status_code == 401
    assert "Cookie" in client.get("/api/v1/queue")["Vary"]
    assert "Cookie" in client.get("/api/v1/queue")["Vary"]


def test_few_values_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "_LIMIT", 3)
    numbers: kept.Kept[int] = kept.Kept()
    assert [numbers.get(n, lambda n=n: n, anyhow=60) for n in range(10)] == list(range(10))
    assert len(numbers._kept) <= 3
