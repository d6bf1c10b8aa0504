#!/usr/bin/env python3
"""Run one Django command with Tidegate's settings."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_site.settings")
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, ProgrammingError

    try:
        execute_from_command_line(sys.argv)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read what this prints has gone, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OperationalError, ProgrammingError) as error:
        if "no such table" not in str(error) and "does not exist" not in str(error):
            if isinstance(error, ProgrammingError):
                raise
            from scheduler_site.errands import no_room

            sys.exit(f"The database cannot be used now ({str(error).strip()}){no_room()}.")
        sys.exit(f"This database has no tables of Tidegate ({error}). ./tidegate up makes them, or: manage.py migrate")


if __name__ == "__main__":
    main()
