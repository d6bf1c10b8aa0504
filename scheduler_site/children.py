"""One supervised process: how it is started, seen to be ready, watched, restarted and stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from scheduler_site import deathsignal

LOG_LIMIT = 10 * 1024 * 1024
# Seconds to wait before each restart in a row; the first is immediate.
BACK_OFF = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
# A process that lived this many seconds starts again at the front of BACK_OFF.
STEADY_AFTER = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What to run and how to know that it works."""

    name: str
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    ready: Callable[[], bool]
    marks: tuple[Path, ...] = ()  # files that an earlier life left and that would look like readiness
    pass_fds: tuple[int, ...] = ()
    stop_signal: signal.Signals = signal.SIGTERM


class Child:
    """The present life of a program, and how often it had to be started again."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.restarts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self.failures = 0
        self.due_at: float | None = None

    @property
    def name(self) -> str:
        return self.program.name

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self, now: float) -> None:
        """Start the program in a session of its own; call from the main thread only (see deathsignal)."""
        for mark in self.program.marks:
            mark.unlink(missing_ok=True)
        _rotate(self.program.log)
        parent = os.getpid()
        with self.program.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.program.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=dict(self.program.environment),
                start_new_session=True,
                pass_fds=self.program.pass_fds,
                preexec_fn=lambda: deathsignal.die_with_parent(parent),  # safe: we have no threads
            )
        self._started_at = now
        self.due_at = None

    def reap(self, now: float) -> int | None:
        """Return the exit status if the process has ended (negative: a signal), and plan its restart."""
        if self._process is None or not _has_ended(self._process.pid):
            return None
        # Before the leader is reaped its number cannot be reused, so the group is still the right one.
        self._signal_group(signal.SIGKILL)
        status = self._process.wait()
        self._process = None
        if now - self._started_at >= STEADY_AFTER:
            self.failures = 0
        self.due_at = now + BACK_OFF[min(self.failures, len(BACK_OFF) - 1)]
        self.failures += 1
        return status

    def restart(self, now: float) -> None:
        self.restarts += 1
        self.start(now)

    def is_ready(self) -> bool:
        return self._process is not None and self.program.ready()

    def ask_to_stop(self) -> None:
        """Signal the leader alone: a worker that is asked must not lose its pool processes first."""
        if self._process is not None:
            os.kill(self._process.pid, self.program.stop_signal)

    def kill(self) -> None:
        """SIGKILL for the leader and all that share its group."""
        if self._process is not None:
            self._signal_group(signal.SIGKILL)

    def _signal_group(self, number: signal.Signals) -> None:
        assert self._process is not None
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass


def _has_ended(pid: int) -> bool:
    """Return whether our child is a zombie now, leaving it one."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _rotate(log: Path) -> None:
    try:
        if log.stat().st_size > LOG_LIMIT:
            os.replace(log, log.with_name(log.name + ".1"))
    except FileNotFoundError:
        pass
