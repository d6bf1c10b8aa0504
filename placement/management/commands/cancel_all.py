from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from placement.services import members, stopping


class Command(BaseCommand):
    help = "Cancel every job that waits or runs, whether the service is up or not."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--wait", type=float, default=20.0, help="seconds to wait for their end (%(default)s)")

    def handle(self, **options: Any) -> None:
        jobs = stopping.unfinished()
        if not jobs.exists():
            self.stdout.write("No job waits or runs.")
            return
        admin, _ = members.first_admin()
        left = stopping.stop(admin, jobs, wait_s=options["wait"], say=self.stdout.write)
        if left:
            raise CommandError(f"{left} of them still run after {options['wait']:g} s.")
