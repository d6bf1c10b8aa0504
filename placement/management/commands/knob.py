from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from placement.domain.errors import Refused
from placement.models import KnobOverride
from placement.selectors import tuned
from placement.services import tuning


class Command(BaseCommand):
    """List the knobs that were turned, or turn one."""

    help = (
        "List the knobs that are not at their default, show one (knob NAME), set it (knob NAME VALUE), "
        "or put it back (knob NAME default)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", nargs="?")
        parser.add_argument("value", nargs="?")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["name"] is None:
            turned = KnobOverride.objects.order_by("name")
            for row in turned:
                self.stdout.write(f"{row.name} = {row.value} (set by {row.who})")
            if not turned:
                self.stdout.write("Every knob is at its default; docs/knobs.md lists them.")
            return
        if options["value"] is None:
            self._show(options["name"])
            return
        try:
            text = None if options["value"] == "default" else options["value"]
            self.stdout.write(tuning.turn(None, options["name"], text))
        except Refused as error:
            raise CommandError(error.sentence) from error

    def _show(self, name: str) -> None:
        found = [knob for subject in tuned.subjects(name) for knob in subject.knobs if knob.name == name]
        if not found:
            raise CommandError(f"There is no knob {name!r}. docs/knobs.md lists them.")
        knob = found[0]
        stands = f"default {knob.default}" + (f", set by {knob.who}" if knob.who else "")
        self.stdout.write(f"{name} = {knob.value} {knob.unit} ({stands}): {knob.help}")
