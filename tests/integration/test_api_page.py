"""The page of the API is the same for everybody and made once: it is half a megabyte of markup."""

from __future__ import annotations

import pytest
from django.test import Client

from placement.api import reading
from placement.models import Role
from placement.views import api_page
from tests.integration.rows import a_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(client: Client) -> Client:
    api_page._list.cache_clear()
    client.force_login(a_user("ann", Role.VIEWER))
    return client


def test_operations_are_written_once_for_all_who_read_them(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    first = client.get("/api").content.decode()
    assert all(f'id="{one.id}"' in first for noun in reading.nouns() for one in noun.operations)
    monkeypatch.setattr(reading, "nouns", None)  # nobody may ask again
    client.force_login(a_user("ben", Role.VIEWER))
    assert first.split('<div class="api">')[1] == client.get("/api").content.decode().split('<div class="api">')[1]


def test_what_is_looked_for_is_shown_alone_and_open_where_it_is_little(client: Client) -> None:
    found = client.get("/api", {"q": "get queue"}).content.decode()
    assert "api/v1/queue" in found
    assert "api/v1/tokens" not in found
    none = client.get("/api", {"q": "nosuchword"}).content.decode()
    assert "No operation has all of these words." in none
    assert "0 operations" in none


def test_the_address_is_the_one_that_was_asked(client: Client) -> None:
    assert "http://localhost/api/v1/me" in client.get("/api", headers={"host": "localhost"}).content.decode()
    assert "http://127.0.0.1/api/v1/queue" in client.get("/api", headers={"host": "127.0.0.1"}).content.decode()
