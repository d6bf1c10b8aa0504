"""Ends that somebody asks for: politely, at once, too early, too late, and against resistance."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.runner.signals import signal_member
from placement.runner.status import Phase, look
from placement.runner.stop_request import members, request_stop
from tests.acceptance.runner_run import STORM, Run, end_all
from tests.wait import until


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    end_all()


def test_a_polite_job_ends_on_term_with_its_own_code() -> None:
    run = Run("trap 'echo bye; exit 0' TERM; echo up; while ((SECONDS < 90)); do sleep 0.05; done", grace_s=60).start()
    run.wait_for_log(b"up")
    assert request_stop(run.dir, "cancel") == "signalled"
    record = run.ended()
    assert (record.code, record.stopped_by, record.killed) == (0, "cancel", False)
    assert record.stop_requested_at is not None
    assert run.log() == b"up\nbye\n"


def test_term_comes_once() -> None:
    run = Run("trap 'echo term' TERM; echo up; while ((SECONDS < 90)); do sleep 0.05; done", grace_s=1.5).start()
    run.wait_for_log(b"up")
    request_stop(run.dir, "cancel")
    request_stop(run.dir, "cancel")
    record = run.ended()
    assert (record.signal, record.stopped_by) == (signal.SIGKILL, "cancel")
    assert run.log() == b"up\nterm\n"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("trap '' TERM; echo up; while ((SECONDS < 90)); do sleep 1; done", id="ignores TERM"),
        pytest.param("trap '' TERM; echo up; kill -STOP $$; sleep 300", id="stopped, ignores TERM"),
        pytest.param(
            "trap 'kill -STOP $$' TERM CONT; echo up; while ((SECONDS < 90)); do sleep 0.05; done", id="stops again"
        ),
        pytest.param("trap '' TERM; setsid sleep 300 & echo up; wait", id="a child in another session"),
        pytest.param("(trap '' TERM; setsid -f sleep 300); trap '' TERM; echo up; sleep 300", id="an orphan"),
    ],
)
def test_resistance_ends_with_kill_after_the_grace(command: str) -> None:
    run = Run(command, grace_s=0.5).start()
    run.wait_for_log(b"up")
    began = time.monotonic()
    request_stop(run.dir, "cancel")
    record = run.ended()
    assert 0.4 < time.monotonic() - began < 0.5 + 3
    assert (record.signal, record.killed, record.stopped_by) == (signal.SIGKILL, True, "cancel")


def test_a_stopped_job_can_still_end_politely() -> None:
    run = Run("trap 'exit 0' TERM; echo up; kill -STOP $$; sleep 300", grace_s=60).start()
    run.wait_for_log(b"up")
    stat = Path(f"/proc/{run.started.child.pid}/stat")
    until(lambda: ") T " in stat.read_text(), 20, "the stop")
    request_stop(run.dir, "cancel")
    assert run.ended().code == 0


def test_a_child_in_another_session_is_ended_with_the_job() -> None:
    run = Run("setsid sh -c 'echo up; exec sleep 300' & wait").start()
    run.wait_for_log(b"up")
    assert len(members(run.started)) == 2
    request_stop(run.dir, "cancel")
    record = run.ended()
    assert (record.signal, record.killed) == (signal.SIGTERM, False)


def test_the_watchdog_does_not_wait() -> None:
    run = Run("trap 'echo handler' TERM; echo up; while ((SECONDS < 90)); do sleep 0.05; done", grace_s=60).start()
    run.wait_for_log(b"up")
    request_stop(run.dir, "watchdog")
    record = run.ended()
    assert (record.signal, record.killed, record.stopped_by) == (signal.SIGKILL, True, "watchdog")
    assert run.log() == b"up\n"


def test_a_second_request_may_hasten_the_end_and_keeps_the_first_reason() -> None:
    run = Run("trap '' TERM; echo up; while ((SECONDS < 90)); do sleep 0.05; done", grace_s=60).start()
    run.wait_for_log(b"up")
    request_stop(run.dir, "cancel")
    request_stop(run.dir, "impatient", grace_s=0)
    record = run.ended()
    assert (record.signal, record.stopped_by) == (signal.SIGKILL, "cancel")


def test_a_request_is_found_without_a_signal() -> None:
    run = Run("echo up; sleep 300").start()
    run.wait_for_log(b"up")
    (run.control / "stop.json").write_text('{"reason": "log", "grace_s": 3}')
    record = run.ended()
    assert (record.signal, record.stopped_by) == (signal.SIGTERM, "log")


def test_term_to_the_runner_alone_is_a_stop_and_a_closed_terminal_is_none() -> None:
    run = Run("echo up; sleep 300").start()
    run.wait_for_log(b"up")
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGPIPE):
        assert signal_member(run.started.runner, number)
    assert look(run.dir).phase is Phase.RUNNING
    assert signal_member(run.started.runner, signal.SIGTERM)
    record = run.ended()
    assert (record.signal, record.stopped_by) == (signal.SIGTERM, "signal")


def test_the_time_limit_is_kept() -> None:
    run = Run(
        "trap '' TERM; echo up; while ((SECONDS < 90)); do sleep 0.05; done", time_limit_s=1.5, grace_s=0.3
    ).start()  # it resists by then
    record = run.ended()
    assert (record.signal, record.stopped_by, record.killed) == (signal.SIGKILL, "time_limit", True)
    assert record.duration_s is not None
    assert 1.7 < record.duration_s < 4.0


def test_a_request_before_the_launch_means_that_nothing_runs() -> None:
    run = Run("echo never")
    assert request_stop(run.dir, "cancel") == "not_started"
    assert run.launch().ok
    record = run.ended()
    assert (record.code, record.signal, record.stopped_by, record.start_error) == (None, None, "cancel", None)
    assert run.log() == b""
    assert not (run.control / "started.json").exists()


@pytest.mark.parametrize("delay_s", [0.0, 0.01, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06])
def test_a_request_during_the_start_leaves_no_process(delay_s: float) -> None:
    run = Run("echo ran; sleep 300")
    launching = threading.Thread(target=run.launch)
    launching.start()
    threading.Event().wait(delay_s)
    assert request_stop(run.dir, "cancel") in ("signalled", "not_started")
    launching.join()
    record = run.ended()
    assert record.stopped_by == "cancel"
    assert (record.code, record.signal) in ((None, None), (None, signal.SIGTERM))
    assert look(run.dir).phase is Phase.EXITED


def test_a_request_after_the_end_changes_nothing() -> None:
    run = Run("exit 0").start()
    before = run.ended()
    assert request_stop(run.dir, "cancel") == "already_gone"
    assert run.ended() == before
    assert not (run.control / "stop.json").exists()


def test_a_cancel_of_what_the_command_left_behind_keeps_its_code() -> None:
    run = Run("setsid -f sleep 300; exit 0", sweep="keep").start()
    leader = run.leader()
    assert request_stop(run.dir, "cancel") == "signalled"
    record = run.ended()
    assert (record.code, record.stopped_by, record.swept) == (0, "cancel", False)
    assert record.stop_requested_at is not None
    assert record.stop_requested_at > leader.at


@pytest.mark.parametrize("kind", ["setsid", "together"])
def test_a_storm_of_forks_ends_within_the_grace_and_two_seconds(kind: str) -> None:
    run = Run(argv=[*STORM, kind, "60"], grace_s=0.5).start()
    run.wait_for_log(b"up")
    growth = run.home / "growth"
    until(lambda: growth.exists() and growth.stat().st_size > 500, 20, "a storm")
    began = time.monotonic()
    request_stop(run.dir, "cancel")
    record = run.ended()
    assert time.monotonic() - began < 0.5 + 2
    assert record.stopped_by == "cancel"
    size = growth.stat().st_size
    until(lambda: time.monotonic() > began + 3, 5, "half a second of quiet")
    assert growth.stat().st_size == size


def test_the_storm_does_not_starve_the_runner() -> None:
    run = Run(argv=[*STORM, "setsid", "60"], grace_s=0.2, time_limit_s=1.0).start()
    record = run.ended()
    assert record.stopped_by == "time_limit"
    assert record.duration_s is not None
    assert record.duration_s < 1.0 + 0.2 + 2
    assert os.path.getsize(run.home / "growth") > 100
