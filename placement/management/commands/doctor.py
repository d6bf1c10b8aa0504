from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from placement.services import inspection

_MARKS = {True: "ok", False: "no", None: "  "}


class Command(BaseCommand):
    help = "Say what works on this machine; exit 1 with the reason where the service cannot run."
    requires_system_checks: list[str] = []  # it says the same in its own words, and must speak when they fail

    def handle(self, **options: Any) -> None:
        found = inspection.findings()
        width = max(len(finding.what) for finding in found)
        shown = ""
        for finding in found:
            what = "" if finding.what == shown else finding.what
            shown = finding.what
            self.stdout.write(f"{_MARKS[finding.ok]}  {what:<{width}}  {finding.sentence}")
        fatal = [finding for finding in found if finding.fatal]
        for finding in fatal:
            self.stderr.write(f"Tidegate cannot run here. {finding.what}: {finding.sentence}.")
        if fatal:
            sys.exit(1)
