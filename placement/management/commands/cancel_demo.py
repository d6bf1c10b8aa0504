from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from placement.services import members, stopping


class Command(BaseCommand):
    help = "Cancel the jobs of the demonstration."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--wait", type=float, default=2.0, help="seconds to wait for their end (%(default)s)")

    def handle(self, **options: Any) -> None:
        jobs = stopping.unfinished().filter(demo=True)
        if jobs.exists():
            admin, _ = members.first_admin()
            stopping.stop(admin, jobs, wait_s=options["wait"], say=lambda sentence: None)
