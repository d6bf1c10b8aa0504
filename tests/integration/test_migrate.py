"""Migrations on PostgreSQL may take their time between two statements; every other transaction may not."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.integration import databases

pytestmark = pytest.mark.django_db(transaction=True)


def patience() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW idle_in_transaction_session_timeout")
        return str(cursor.fetchone()[0])


def test_a_migration_is_not_ended_because_the_machine_is_slow(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    migrate = MigrationExecutor.migrate

    def seen_migrate(*args: Any, **more: Any) -> Any:
        seen.append(patience())
        return migrate(*args, **more)

    monkeypatch.setattr(MigrationExecutor, "migrate", seen_migrate)
    with databases.on(postgres_url, monkeypatch):
        assert patience() == "5s"
    assert seen == ["0"]
