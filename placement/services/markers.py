"""TIDEGATE_JOB_ID in the environment of a process: read once per process, never proof, only a tie-breaker."""

from __future__ import annotations

from collections.abc import Callable

from calibration.domain.samples import Reading

_NAME = b"TIDEGATE_JOB_ID="


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
            return entry[len(_NAME) :].decode("ascii", "replace")
    return None
