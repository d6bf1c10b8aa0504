"""The end of a run before its own: who asked, and the way from TERM to the last reaped child."""

from __future__ import annotations

import os
import signal
from typing import Any, NamedTuple

from placement.runner import cgroup
from placement.runner.cgroup import NONE, Group
from placement.runner.descendants import children_of, walk
from placement.runner.identity import Identity
from placement.runner.jsonfile import control_path, read_json, seconds
from placement.runner.signals import signal_group, signal_member

STOP = "stop.json"
# A memory death must not wait: a handler that runs on TERM allocates.
AT_ONCE = ("watchdog",)
_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.5
# A storm of forks can outrun the freeze; the kills that follow do without it.
_FREEZE_ROUNDS = 10


class StopRequest(NamedTuple):
    """What control/stop.json asks for. `at` is wall time; without `grace_s` the spec's grace counts."""

    reason: str
    at: float | None
    grace_s: float | None


def read_stop(run_dir: str | os.PathLike[str]) -> StopRequest | None:
    """Return the request in control/stop.json, None where there is none."""
    fields = read_json(control_path(run_dir, STOP))
    return None if fields is None else parse_stop(fields)


def parse_stop(fields: dict[str, Any]) -> StopRequest:
    """Return the request in these fields; one without a reason is a cancel."""
    reason = fields.get("reason")
    return StopRequest(
        reason=reason if isinstance(reason, str) and reason else "cancel",
        at=_from_zero(fields.get("at")),
        grace_s=_from_zero(fields.get("grace_s")),
    )


def _from_zero(value: Any) -> float | None:
    found = seconds(value)
    return None if found is None else max(0.0, found)


class Ending:
    """Ends every process of the run: TERM once, and after the grace KILL until wait() knows no child.

    Killing our own children is enough: whatever a killed one leaves behind becomes our child in turn. Times
    are seconds on the monotonic clock.
    """

    def __init__(self, child: Identity, group: Group = NONE) -> None:
        self._child, self._group = child, group
        self._kill_at: float | None = None
        self._pause = _FIRST_PAUSE_S
        self._struck: set[int] = set()
        self.killed = False
        self.stubborn: list[int] = []

    @property
    def begun(self) -> bool:
        """True once TERM has been sent, or KILL is due."""
        return self._kill_at is not None

    def begin(self, now: float, grace_s: float) -> None:
        """Send TERM, KILL after the grace (without one at once, frozen); a second call can only shorten the grace."""
        first = self._kill_at is None
        self._kill_at = min(now + grace_s, self._kill_at if self._kill_at is not None else float("inf"))
        if first and grace_s > 0:
            # A stopped process takes its TERM only once it goes on.
            self._send(signal.SIGTERM)
            self._send(signal.SIGCONT)
        elif grace_s <= 0:
            self._freeze()

    def expect(self, now: float, within_s: float) -> None:
        """Let somebody else end the run politely; what lives after this time is killed here."""
        self._kill_at = min(now + within_s, self._kill_at if self._kill_at is not None else float("inf"))

    def step(self, now: float) -> float | None:
        """Do what is due; return the seconds until the next step, None where nothing is under way."""
        if self._kill_at is None:
            return None
        if now < self._kill_at:
            return self._kill_at - now
        return self._kill_round()

    def _send(self, number: int) -> None:
        # Looked for before the group gets it: an orphan of a member that dies at once is on the move, and one
        # walk can miss it. The second walk finds those.
        known = walk(os.getpid())
        by_group = signal_group(self._child.pid, self._child, number)
        reached: set[int] = set()
        for stat in (*known, *walk(os.getpid())):
            # One TERM each: a second one means "at once" to many programs.
            if stat.pid in reached or (by_group and stat.pgid == self._child.pid):
                continue
            reached.add(stat.pid)
            signal_member(Identity(stat.pid, stat.start_ticks, self._child.boot_id), number)

    def _freeze(self) -> None:
        """Stop every process, until a look finds no new one: nothing grows or forks while the kills go round."""
        if cgroup.kill(self._group):
            self.killed = True
            return  # the kernel ends all of it in one go, forks under way included
        stopped: set[Identity] = set()
        for _ in range(_FREEZE_ROUNDS):
            found = {Identity(stat.pid, stat.start_ticks, self._child.boot_id) for stat in walk(os.getpid())}
            fresh = found - stopped
            if not fresh:
                return
            for member in fresh:
                signal_member(member, signal.SIGSTOP)
            stopped |= fresh

    def _kill_round(self) -> float:
        cgroup.kill(self._group)  # those whom we may not signal, too; what never was in it follows
        signal_group(self._child.pid, self._child, signal.SIGKILL)
        children = children_of(os.getpid())
        refused = []
        for pid in children:
            try:
                # Safe by pid: a child of ours keeps its number until we wait for it.
                os.kill(pid, signal.SIGKILL)
                self.killed = True
            except PermissionError:
                refused.append(pid)
            except OSError:
                continue
        self.stubborn = refused
        fresh = not self._struck.issuperset(children)
        self._struck = set(children)
        self._pause = _FIRST_PAUSE_S if fresh else min(_LONGEST_PAUSE_S, self._pause * 2)
        return self._pause
