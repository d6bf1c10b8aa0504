"""Runners forked from a warm nursery: as detached, as exclusive and as clean as one that was started by itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.runner.identity import alive, read_stat
from placement.runner.status import Phase, look
from placement.runner.warm import Nursery
from tests.acceptance.runner_run import Run
from tests.wait import until


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


def pid_of(nursery: Nursery) -> int:
    assert nursery._process is not None
    return nursery._process.pid


def test_runs_end_as_they_do_from_a_launcher(nursery: Nursery) -> None:
    runs = [Run("echo out; echo err >&2; exit 3"), Run("kill -9 $$"), Run(argv=["/nowhere/program"])]
    said = [nursery.launch(run.dir) for run in runs]
    assert [one.ok for one in said] == [True] * 3
    assert [(r.code, r.signal) for r in (run.ended() for run in runs)] == [(3, None), (None, 9), (None, None)]
    assert (runs[0].log(), "/nowhere/program" in (runs[2].ended().start_error or "")) == (b"out\n", True)


def test_a_runner_is_nobodys_child_and_leads_a_session_of_its_own(nursery: Nursery) -> None:
    run = Run("sleep 300")
    assert nursery.launch(run.dir).message.startswith("started: runner ")
    runner = until(lambda: read_stat(look(run.dir).started.runner.pid), 20, "the runner")  # type: ignore[union-attr]
    assert runner.ppid not in (pid_of(nursery), os.getpid())
    assert runner.sid == runner.pid
    assert runner.name == "runner run"


def test_a_job_gets_nothing_of_the_nursery(nursery: Nursery) -> None:
    run = Run("ls -v /proc/self/fd | xargs; grep -E '^(SigBlk|SigIgn)' /proc/self/status; env; pwd")
    assert nursery.launch(run.dir).ok
    assert run.ended().code == 0
    lines = run.log().decode().splitlines()
    assert lines[0] == "0 1 2 3"  # the last one is how ls looks
    assert [int(line.split()[1], 16) for line in lines[1:3]] == [0, 0]
    assert not any(line.startswith("LC_ALL=") for line in lines)
    assert lines[-1] == str(run.home)


def test_a_killed_nursery_is_replaced_and_its_runs_go_on(nursery: Nursery) -> None:
    first, second = Run("while [ ! -e go ]; do sleep 0.05; done; exit 5"), Run("exit 6")
    assert nursery.launch(first.dir).ok
    killed = pid_of(nursery)
    os.kill(killed, signal.SIGKILL)
    assert nursery.launch(second.dir).ok
    assert second.ended().code == 6
    assert pid_of(nursery) != killed or nursery._process.poll() is not None  # type: ignore[union-attr]
    assert look(first.dir).phase is Phase.RUNNING
    (first.home / "go").touch()
    assert first.ended().code == 5


def test_a_nursery_that_hangs_delays_one_start_and_is_replaced(nursery: Nursery) -> None:
    first, late, next_one = Run("while [ ! -e go ]; do sleep 0.05; done; exit 5"), Run("exit 6"), Run("exit 7")
    assert nursery.launch(first.dir).ok
    hung = pid_of(nursery)
    os.kill(hung, signal.SIGSTOP)
    assert "did not confirm" in nursery.launch(late.dir, timeout_s=0.3).message
    assert read_stat(hung) is None
    assert [nursery.launch(run.dir).ok for run in (next_one, late)] == [True, True]
    assert [next_one.ended().code, late.ended().code] == [7, 6]
    (first.home / "go").touch()
    assert first.ended().code == 5


def test_a_stopped_nursery_can_be_let_go() -> None:
    nursery, run = Nursery(), Run("exit 4")
    assert nursery.launch(run.dir).ok
    pid = pid_of(nursery)
    os.kill(pid, signal.SIGSTOP)
    nursery.close()
    assert read_stat(pid) is None
    assert run.ended().code == 4


def test_a_nursery_that_nobody_asks_any_more_ends_and_its_runs_go_on() -> None:
    nursery, run = Nursery(), Run("while [ ! -e go ]; do sleep 0.05; done; exit 5")
    assert nursery.launch(run.dir).ok
    pid = pid_of(nursery)
    nursery.close()
    assert read_stat(pid) is None
    runner = run.started.runner
    assert alive(runner)
    (run.home / "go").touch()
    assert run.ended().code == 5


def test_where_no_nursery_can_be_started_a_runner_is_started_by_itself(tmp_path: Path) -> None:
    run = Run("exit 4")
    for nursery in (Nursery(python="/nowhere/python"), Nursery(root=tmp_path)):
        assert nursery.launch(run.dir).ok
        nursery.close()
    assert run.ended().code == 4
    assert run.log() == b""


def test_one_attempt_runs_once_whoever_starts_it(nursery: Nursery) -> None:
    run = Run("echo once; sleep 0.2")
    said = [nursery.launch(run.dir).message, run.launch().message, nursery.launch(run.dir).message]
    assert said[0].startswith("started: runner ")
    assert said[1:] == ["another runner has this attempt", "another runner has this attempt"]
    assert run.ended().code == 0
    assert run.log() == b"once\n"


def test_a_runner_that_says_nothing_holds_up_its_own_start_only(nursery: Nursery) -> None:
    stuck = Run("true")
    os.mkfifo(stuck.control / "runner.log")  # opening it waits for a reader that never comes
    began = time.monotonic()
    assert nursery.launch(stuck.dir, timeout_s=0.3).ok is False
    assert time.monotonic() - began < 15  # and not for ever
    run = Run("exit 2")
    assert nursery.launch(run.dir).ok
    assert run.ended().code == 2
    reader = os.open(stuck.control / "runner.log", os.O_RDONLY | os.O_NONBLOCK)
    assert stuck.ended().code == 0
    os.close(reader)
