"""Short Django processes that `up` and `down` run, so that the supervisor itself stays small.

python -m scheduler_site.errands prepare [--demo] [--simulate SPEC] [--address URL]
python -m scheduler_site.errands farewell [--demo]
python -m scheduler_site.errands cancel-all
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time

import django
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import DatabaseError

# Seconds in which the loop, still alive, writes down that the cancelled jobs have ended.
SETTLE_WITHIN = 2.0


def prepare(*, demo: bool, simulate: str, address: str) -> None:
    """Bring the database up to date and make what a first start needs: node, devices, first admin."""
    if settings.BROKER_IS_FILES:
        # A message only says "look now"; what an earlier life left unread would be looked at in vain.
        shutil.rmtree(settings.BROKER_FOLDER / "queues", ignore_errors=True)
    call_command("migrate", interactive=False, verbosity=0)
    from placement.checks import data_is_private

    for wrong in data_is_private():  # commands of `manage` refuse to work with these
        print(f"Warning: {wrong.msg} Close it: {wrong.hint}")
    options = ["--demo"] * demo
    options += ["--simulate", simulate] if simulate else []
    options += ["--address", address] if address else []
    call_command("bootstrap", *options)


def farewell(*, demo: bool) -> None:
    """Cancel the demonstration's jobs, then print how many jobs go on without the service."""
    from placement import selectors
    from placement.services import stopping

    if demo:
        call_command("cancel_demo")
        deadline = time.monotonic() + SETTLE_WITHIN
        while stopping.unfinished().filter(demo=True).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
    print(selectors.running_count())


def no_room() -> str:
    """Return what to do where a full disk is behind a failure; its own words name neither disk nor way out."""
    from placement.services import premises

    told = premises.full(settings.DATA)
    return f": {told}, then try again; running jobs go on" if told else ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="errands")
    parser.add_argument("errand", choices=["prepare", "farewell", "cancel-all"])
    parser.add_argument("--demo", action="store_true")
    parser.add_argument("--simulate", default="")
    parser.add_argument("--address", default="")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_site.settings")
    try:
        django.setup()
        if options.errand == "prepare":
            prepare(demo=options.demo, simulate=options.simulate, address=options.address)
        elif options.errand == "farewell":
            farewell(demo=options.demo)
        else:
            call_command("cancel_all")
    except DatabaseError as error:
        where = settings.DATABASES["default"]["NAME"]
        print(f"{options.errand} failed at the database {where}: {error}{no_room()}", file=sys.stderr)
        return 1
    except CommandError as error:
        print(f"{options.errand} failed: {error}{no_room()}".strip(), file=sys.stderr)
        return 1
    except ImproperlyConfigured as error:
        print(f"{options.errand} failed: {error}".strip(), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
