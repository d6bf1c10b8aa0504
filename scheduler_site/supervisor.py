"""Keeps the service's processes alive, and ends all of them when it is told to or dies."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from scheduler_site.children import Child, Program

# Seconds that the first start may take on a slow machine, migrations not included.
READY_WITHIN = 90.0
# A program that ended this often before it was ready once will not get there.
HOPELESS_AFTER = 4
# A cycle's transaction that is still open after this many seconds is taken from its holder.
CYCLE_LIMIT = 3.0
# Seconds from SIGTERM to SIGKILL for each stage of the stop, last started first.
STOP_WITHIN = (2.5, 3.5, 1.0)


class NotReady(RuntimeError):
    """The service did not come up; the sentence names the process and its log."""


class CycleWatch:
    """What the tick worker's marks say: inside a cycle since when."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.inside_since: float | None = None

    def read(self, now: float) -> None:
        """Take in the marks that have arrived; the last one counts."""
        try:
            marks = os.read(self.descriptor, 4096)
        except BlockingIOError:
            return
        if marks:
            self.inside_since = now if marks.endswith(b"B") else None

    def is_stuck(self, now: float) -> bool:
        return self.inside_since is not None and now - self.inside_since > CYCLE_LIMIT


class Supervisor:
    """Runs stages of programs: the first must be ready before the others begin; they stop in reverse order.

    `on_change` is called whenever a process got another number, so that others can find it.
    """

    def __init__(
        self,
        stages: Sequence[Sequence[Program]],
        *,
        cycle: CycleWatch | None = None,
        on_change: Callable[[dict[str, dict[str, int | None]]], None] = lambda children: None,
    ) -> None:
        self._stages = [[Child(program) for program in stage] for stage in stages]
        self._cycle = cycle
        self._on_change = on_change
        self._stop_signals = 0
        self._wake_in, self._wake_out = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    @property
    def stopping(self) -> bool:
        return self._stop_signals > 0

    def listen(self) -> None:
        """Make signals wake the loop: SIGINT and SIGTERM ask it to end, SIGCHLD to look after a process."""
        signal.set_wakeup_fd(self._wake_out, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note_stop)

    def start(self) -> None:
        """Start the first stage, then all others at once; raise NotReady when a process is late."""
        deadline = time.monotonic() + READY_WITHIN
        foundation, rest = self._stages[:1], self._stages[1:]
        for stages in (foundation, rest):
            children = [child for stage in stages for child in stage]
            if self.stopping:
                return
            for child in children:
                child.start(time.monotonic())
            self._tell()
            while not self.stopping:
                late = [child for child in children if not child.is_ready()]
                if not late:
                    break
                hopeless = [child for child in late if child.failures >= HOPELESS_AFTER]
                if hopeless or time.monotonic() > deadline:
                    raise NotReady(" ".join(_lateness(child) for child in hopeless or late))
                self._turn(at_most=0.05)

    def run(self) -> None:
        """Watch until a signal asks to stop."""
        while not self.stopping:
            self._turn(at_most=5.0)

    def stop(self) -> None:
        """End the stages in reverse order, SIGTERM first, SIGKILL for what stays; a second signal hurries."""
        for index, stage in enumerate(reversed(self._stages)):
            for child in stage:
                child.ask_to_stop()
            deadline = time.monotonic() + STOP_WITHIN[min(index, len(STOP_WITHIN) - 1)]
            while any(child.pid for child in stage):
                now = time.monotonic()
                if now > deadline or self._stop_signals > 1:
                    for child in stage:
                        child.kill()
                for child in stage:
                    child.reap(now)
                self._sleep(0.05)
            self._tell()

    def _turn(self, *, at_most: float) -> None:
        """Wait for an event, then reap, restart what is due, and end a cycle that does not end."""
        now = time.monotonic()
        self._sleep(max(0.0, min([at_most, *(moment - now for moment in self._moments())])))
        now, changed = time.monotonic(), False
        if self._cycle is not None:
            self._cycle.read(now)
            if self._cycle.is_stuck(now):
                self._cycle.inside_since = None
                self._end_stuck_cycle()
        for child in self._children():
            status = child.reap(now)
            if status is not None:
                changed = True
                if self._cycle is not None and child.name.startswith("tick@"):
                    self._cycle.inside_since = None
                _say(f"{child.name} ended ({_status(status)}) and is started again; see {child.program.log}")
            if child.due_at is not None and child.due_at <= now and not self.stopping:
                child.restart(now)
                changed = True
        if changed:
            self._tell()

    def _moments(self) -> list[float]:
        """Return the times at which something falls due."""
        moments = [child.due_at for child in self._children() if child.due_at is not None]
        if self._cycle is not None and self._cycle.inside_since is not None:
            moments.append(self._cycle.inside_since + CYCLE_LIMIT + 0.01)
        return moments

    def _end_stuck_cycle(self) -> None:
        for child in self._children():
            if child.name.startswith("tick@"):
                _say(f"{child.name} was inside one cycle for more than {CYCLE_LIMIT:g} s and is killed.")
                child.kill()

    def _sleep(self, seconds: float) -> None:
        watched = [self._wake_in] + ([self._cycle.descriptor] if self._cycle is not None else [])
        readable, _, _ = select.select(watched, [], [], seconds)
        if self._wake_in in readable:
            os.read(self._wake_in, 4096)
        if self._cycle is not None and self._cycle.descriptor in readable:
            self._cycle.read(time.monotonic())

    def _children(self) -> list[Child]:
        return [child for stage in self._stages for child in stage]

    def _note_stop(self, *_: object) -> None:
        self._stop_signals += 1

    def _tell(self) -> None:
        self._on_change({child.name: {"pid": child.pid, "restarts": child.restarts} for child in self._children()})


def write_json(path: Path, value: object) -> None:
    """Replace the file in one step: a reader sees the old text or the new one."""
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(json.dumps(value))
    os.replace(draft, path)


def _lateness(child: Child) -> str:
    log = child.program.log
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    last = " / ".join(line.strip() for line in lines[-3:]) or "nothing"
    return f"{child.name} did not come up. Its log {log} ends with: {last}"


def _status(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"code {status}"


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
