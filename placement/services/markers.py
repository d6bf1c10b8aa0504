"""Whose job an environment says a process is: read once per process, never proof, only a tie-breaker.

The number of a job is not enough: another service on this machine has a job of that number too. The folder for its
receipts names the service and the attempt.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from calibration.domain.samples import Reading

_NAME = b"TIDEGATE_RECEIPTS="


def of(run_dir: str | os.PathLike[str]) -> str:
    """Return the marker of the job that runs in this directory."""
    return os.path.join(run_dir, "receipts")


class Markers:
    """What was read, per (pid, start ticks); processes that are gone are forgotten with each reading."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], str | None] = {}

    def reader(self, reading: Reading) -> Callable[[int], str | None]:
        """Return a function from pid to marker for the processes of this reading."""
        alive = {(p.pid, p.start_ticks) for p in reading.processes.values()}
        self._seen = {key: marker for key, marker in self._seen.items() if key in alive}

        def marker_of(pid: int) -> str | None:
            sample = reading.processes.get(pid)
            if sample is None:
                return None
            key = (pid, sample.start_ticks)
            if key not in self._seen:
                self._seen[key] = _read(pid)
            return self._seen[key]

        return marker_of


def _read(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            content = file.read(1 << 20)
    except OSError:
        return None
    for entry in content.split(b"\0"):
        if entry.startswith(_NAME):
            return entry[len(_NAME) :].decode("utf-8", "replace")
    return None
