from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from placement.domain.errors import Refused
from placement.models import Workload
from placement.services import workloads


class Command(BaseCommand):
    """List the workloads, define one from a TOML file (- for standard input), or remove one."""

    help = "List workloads, define or update one from a file (workload FILE.toml), or remove one (--remove NAME)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?")
        parser.add_argument("--remove", metavar="NAME")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["remove"]:
                workloads.remove(None, options["remove"])
                self.stdout.write(f"{options['remove']} is removed; its jobs stay.")
            elif options["file"]:
                text = sys.stdin.read() if options["file"] == "-" else Path(options["file"]).read_text()
                row, created = workloads.define(None, text)
                self.stdout.write(f"{row.name} is {'defined' if created else 'up to date'}.")
            else:
                for row in Workload.objects.order_by("name"):
                    self.stdout.write(f"{row.name}: {row.summary or row.command.splitlines()[0]}")
        except Refused as error:
            raise CommandError(error.sentence) from error
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{options['file']} cannot be read: {error}") from error
