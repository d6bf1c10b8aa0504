from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from calibration.domain import keys
from calibration.models import Pin
from placement.domain.errors import Refused
from placement.services import taught


class Command(BaseCommand):
    """List what is pinned, or pin the need of a workload."""

    help = "List pinned needs, pin one (pin WORKLOAD ram|vram '12 GiB'), or let it be learned again (... none)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workload", nargs="?")
        parser.add_argument("kind", nargs="?", choices=taught.KINDS)
        parser.add_argument("size", nargs="?")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["workload"] is None:
            for row in Pin.objects.order_by("workload", "kind"):
                part = "" if not row.subject or row.subject == keys.named(row.workload) else ", of one script alone"
                self.stdout.write(f"{row.workload}{part}: {row.kind} {row.bytes:,} bytes (set by {row.who})")
            return
        if options["size"] is None:
            raise CommandError("Give the kind of memory and a size too, or the word none.")
        try:
            size = None if options["size"] == "none" else options["size"]
            self.stdout.write(taught.pin(None, options["workload"], options["kind"], size))
        except Refused as error:
            raise CommandError(error.sentence) from error
