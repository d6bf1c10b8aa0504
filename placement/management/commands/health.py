from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from placement import snapshots
from placement.services import premises


class Command(BaseCommand):
    """Exit 0 while this node's workers do their work, 1 with the reason otherwise."""

    help = "Say whether this node's loop finished a look and its start worker takes messages; for service managers."

    def handle(self, *args: Any, **options: Any) -> None:
        node = snapshots.node_now(settings.NODE)
        knobs, _ = snapshots.knobs_now()
        if node is None:
            raise CommandError(f"There is no node {settings.NODE} in this database.")
        if node.tick_age is None or node.tick_age > knobs.node_stale_seconds:
            since = "since it booted" if node.tick_age is None else f"for {node.tick_age:.0f} s"
            first = premises.full(settings.DATA) or "restart its tick worker"
            raise CommandError(f"{node.name} has finished no look {since}: {first}; jobs go on.")
        if node.work_age is not None and node.work_age > knobs.node_no_work_seconds:
            raise CommandError(
                f"{node.name}'s start worker has taken no message for {node.work_age:.0f} s: restart it; jobs go on."
            )
        self.stdout.write(f"{node.name} is well: it looked {node.tick_age:.1f} s ago and takes what it is sent.")
