"""Runs for the runner's tests: a run directory, a launch, and waits with deadlines."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from placement.runner.containment import group_of_run
from placement.runner.descendants import list_pids
from placement.runner.identity import Identity, alive, identify
from placement.runner.launch import LaunchResult, launch
from placement.runner.members import kill_members, members
from placement.runner.record import ExitRecord, LeaderExit, Started, read_exit, read_leader, read_started
from placement.runner.status import Phase, look
from placement.runner.stop_request import request_stop
from tests.wait import until

STORM = [sys.executable, "-S", "-E", str(Path(__file__).with_name("storm.py"))]
"""Needs how its chains live ("setsid" or "together") and how many there are."""
_made: list[Run] = []


class Run:
    """One run directory. `fields` replace those of a plain spec."""

    def __init__(self, command: str | None = None, **fields: Any) -> None:
        # Not pytest's folder: that one is closed to other accounts, and some tests run under them.
        self.home = Path(tempfile.mkdtemp(prefix="tidegate-run-"))
        self.home.chmod(0o755)
        self.dir = self.home / "run"
        self.dir.mkdir(mode=0o700)
        self.control = self.dir / "control"
        self.control.mkdir(mode=0o700)
        spec: dict[str, Any] = {
            "version": 1,
            "job_id": 7,
            "attempt": 1,
            "node": "atlas",
            "command": command,
            "setup": "",
            "cwd": str(self.home),
            "env": {"PATH": os.environ["PATH"], "TIDEGATE_JOB_ID": "7"},
            "account": None,
            "umask": 0o022,
            "log_limit_bytes": 64 << 20,
            "time_limit_s": None,
            "grace_s": 1.0,
            "sweep": "after_grace",
            "sweep_grace_s": 0.5,
            "oom_score_adj": 500,
        }
        spec.update(fields)
        path = self.control / "spec.json"
        path.touch(0o600)
        path.write_text(json.dumps(spec))
        _made.append(self)

    def launch(self, **options: Any) -> LaunchResult:
        return launch(self.dir, sys.executable, **options)

    def start(self) -> Run:
        result = self.launch()
        assert result.ok, result.message
        return self

    @property
    def started(self) -> Started:
        return until(lambda: read_started(self.dir), 20, "started.json")

    def leader(self, timeout: float = 20) -> LeaderExit:
        return until(lambda: read_leader(self.dir), timeout, "leader.json")

    def ended(self, timeout: float = 30) -> ExitRecord:
        record = until(lambda: read_exit(self.dir), timeout, "exit.json")
        started = read_started(self.dir)
        if started is not None:
            until(lambda: not members(started), 20, "the end of every process of the run")
            until(lambda: not alive(started.runner), 20, "the end of its runner, which its record waits for")
        return record

    def log(self, name: str = "stdout") -> bytes:
        return (self.dir / f"{name}.log").read_bytes()

    def wait_for_log(self, text: bytes, timeout: float = 20) -> None:
        until(lambda: text in self.log(), timeout, f"{text!r} in the log")


def end_all() -> None:
    """End what tests have left, whatever became of them, and prove it."""
    failed: list[Exception] = []
    while _made:
        run = _made.pop()
        try:
            _end(run)
        except (AssertionError, OSError) as error:  # one that cannot be ended keeps no other from its end
            failed.append(error)
        shutil.rmtree(run.home, ignore_errors=bool(failed))
    if failed:
        raise AssertionError(f"not everything that tests left could be ended: {failed}") from failed[0]


def _end(run: Run) -> None:
    """Ask its runner first: it alone adopts what a storm of forks leaves behind. Without it, one by one."""
    started = read_started(run.dir)
    if started is None:
        return
    group = group_of_run(run.dir)
    if look(run.dir).phase is not Phase.EXITED and alive(started.runner):
        kill_members([started.runner], signal.SIGCONT)
        request_stop(run.dir, "cancel", 0.0)
        with contextlib.suppress(AssertionError):
            until(lambda: look(run.dir).phase is Phase.EXITED or not alive(started.runner), 10, "the runner's end")
    if look(run.dir).phase is not Phase.EXITED:
        kill_members([started.runner], signal.SIGKILL)
        until(lambda: not alive(started.runner), 20, "the runner's end")
    until(lambda: kill_members(members(started, group), signal.SIGKILL) == 0, 20, "the end of every process")
    until(lambda: kill_members(_at(run.home), signal.SIGKILL) == 0, 20, "the end of those who got away")


def _at(home: Path) -> list[Identity]:
    """Return who works in a run's directory: after a test that killed the runner nothing else knows who got away."""
    found = []
    for pid in list_pids():
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/cwd").startswith(str(home)) and (one := identify(pid)) and alive(one):
                found.append(one)
    return found
