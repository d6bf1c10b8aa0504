from __future__ import annotations

from django.apps import AppConfig


class PlacementConfig(AppConfig):
    name = "placement"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from placement import checks  # noqa: F401  # importing it registers the checks
