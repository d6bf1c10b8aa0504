from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from placement.services import audit, members


class Command(BaseCommand):
    help = "Print a one-time login link for a user, for somebody who is locked out."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="of the user")
        parser.add_argument("--address", default="", help="where the pages are; empty: where the running service says")
        parser.add_argument("--hours", type=float, default=24.0, help="how long it is good for (%(default)s)")

    def handle(self, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["name"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['name']}.")
        if not user.is_active:
            raise CommandError(f"{options['name']} is deactivated; a link would open nothing.")
        if not 0 < options["hours"] <= 24 * 30:
            raise CommandError("--hours must be above 0 and at most 720.")
        link = members.make_link(user, lifetime_s=options["hours"] * 3600, address=options["address"] or _address())
        audit.record(None, "login_link", f"user {user.get_username()}")
        self.stdout.write(f"Login (once): {link}")


def _address() -> str:
    """Return the address that `up` or `web` wrote down when it started on this data, or the usual one."""
    for role in ("up", "web"):
        try:
            return str(json.loads((settings.DATA / f"{role}.json").read_text())["address"])
        except (OSError, ValueError, KeyError):
            continue
    return "http://127.0.0.1:8470"
