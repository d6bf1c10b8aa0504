from __future__ import annotations

from django.apps import AppConfig


class SiteConfig(AppConfig):
    """Makes the Celery application known to every process that sets Django up, commands included."""

    name = "scheduler_site"

    def ready(self) -> None:
        from scheduler_site import celery  # noqa: F401  # importing it makes it the default application
