"""The word with which a runner confirms that its command is about to run: who both are."""

from __future__ import annotations

import re

from placement.runner.identity import Identity, read_boot_id

_TOLD = re.compile(r"started: runner (\d+) since (\d+), command (\d+) since (\d+)", re.ASCII)


def told(runner: Identity, child: Identity) -> str:
    """Return the word with which a runner confirms a start: pids, and when they began, in ticks."""
    return f"started: runner {runner.pid} since {runner.start_ticks}, command {child.pid} since {child.start_ticks}"


def begun(message: str) -> tuple[Identity, Identity] | None:
    """Return the runner and the command of a start that was confirmed so: a job may remove its records at once."""
    if (found := _TOLD.fullmatch(message)) is None:
        return None
    pid, since, child, child_since = map(int, found.groups())
    boot = read_boot_id()
    return Identity(pid, since, boot), Identity(child, child_since, boot)
