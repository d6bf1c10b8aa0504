from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db import connections
from django.db.models.signals import post_migrate, pre_migrate


class PlacementConfig(AppConfig):
    name = "placement"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from placement import checks  # noqa: F401  # importing it registers the checks

        pre_migrate.connect(_patient, sender=self)
        post_migrate.connect(_as_usual, sender=self)


def _patient(using: str, **_: Any) -> None:
    """Let the transactions of a migration pause: a slow machine computes for seconds between two of its statements."""
    _on_postgresql(using, "SET idle_in_transaction_session_timeout = 0")


def _as_usual(using: str, **_: Any) -> None:
    """Have what the settings say of a transaction that pauses in force again."""
    _on_postgresql(using, "RESET idle_in_transaction_session_timeout")


def _on_postgresql(using: str, statement: str) -> None:
    if connections[using].vendor == "postgresql":
        with connections[using].cursor() as cursor:
            cursor.execute(statement)
