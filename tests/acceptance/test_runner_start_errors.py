"""Commands that cannot be started: one sentence in the record and in the log, and no process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from placement.runner.launch import CODE_ROOT, launch
from placement.runner.record import read_exit
from placement.runner.status import Phase, look
from tests.acceptance.runner_run import Run, end_all


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    end_all()


@pytest.mark.parametrize(
    "fields, told",
    [
        pytest.param({"argv": ["/bin/echo", "x" * 131072]}, "131072 bytes, the system takes 131071", id="argument"),
        pytest.param({"command": "#" * 131072}, "131072 bytes, the system takes 131071", id="command text"),
        pytest.param({"argv": ["/bin/echo", "a\0b"]}, "an argument contains a NUL byte", id="NUL"),
        pytest.param({"command": "echo a\0b"}, "the command contains a NUL byte", id="NUL in the command"),
        pytest.param({"command": "true", "cwd": "/nowhere/at all"}, "/nowhere/at all does not exist", id="cwd"),
        pytest.param({"command": "true", "cwd": "/etc/passwd"}, "is not a directory", id="cwd is a file"),
        pytest.param({"argv": ["/etc/passwd"]}, "/etc/passwd is not executable", id="not executable"),
        pytest.param({"argv": ["tidegate-nothing"]}, "there is no program tidegate-nothing", id="no program"),
        pytest.param({"argv": [""]}, "names no program", id="an empty name"),
        pytest.param({"command": "true", "env": {"A": 5}}, "environment is not a table", id="environment"),
        pytest.param({"command": ""}, "neither a command nor", id="nothing to run"),
    ],
)
def test_a_command_that_cannot_start_says_why(fields: dict[str, Any], told: str) -> None:
    run = Run(**fields)
    assert run.launch().ok
    record = run.ended()
    assert record.start_error is not None
    assert record.start_error.startswith("could not start: ")
    assert told in record.start_error
    assert (record.code, record.signal, record.stopped_by) == (None, None, None)
    if (run.dir / "stderr.log").exists():
        assert told.encode() in run.log("stderr")
        assert record.log.stderr_bytes == len(run.log("stderr"))
    assert look(run.dir).phase is Phase.EXITED


def test_one_byte_less_starts() -> None:
    run = Run(argv=["/bin/echo", "x" * 131071]).start()
    assert run.ended().code == 0
    assert len(run.log()) == 131072


@pytest.mark.parametrize("kind", ["link", "file", "folder"])
def test_a_log_that_stands_there_already_is_not_touched(kind: str) -> None:
    run = Run("echo never")
    target = run.home / "target"
    target.write_text("mine")
    log = run.dir / "stdout.log"
    if kind == "link":
        log.symlink_to(target)
    elif kind == "file":
        log.write_text("mine")
    else:
        log.mkdir()
    run.start()
    record = run.ended()
    assert record.start_error is not None
    assert "the log stdout.log cannot be created: File exists" in record.start_error
    assert target.read_text() == "mine"
    assert not (run.control / "started.json").exists()


def test_a_run_directory_that_cannot_be_written_is_not_claimed() -> None:
    run = Run("echo never")
    os.rename(run.control, run.home / "elsewhere")
    result = run.launch()
    assert not result.ok
    assert result.message == "could not start: control/ cannot be written: No such file or directory"
    assert look(run.dir).phase is Phase.NEW
    os.rename(run.home / "elsewhere", run.control)
    assert run.launch().message.startswith("started: runner ")
    assert run.ended().code == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}'])
def test_a_spec_that_cannot_be_read_ends_the_attempt(text: str) -> None:
    run = Run("echo never")
    (run.control / "spec.json").write_text(text)
    assert run.launch().ok
    record = run.ended()
    assert record.start_error is not None
    assert record.start_error.startswith("could not start: ")


def test_a_launcher_without_a_python_says_so() -> None:
    run = Run("true")
    result = launch(run.dir, "/nowhere/python")
    assert not result.ok
    assert "the runner cannot be launched" in result.message
    assert read_exit(run.dir) is None
    assert launch(run.dir, sys.executable, root=run.home).ok is False
    assert look(run.dir).phase is Phase.NEW


def test_a_machine_without_room_for_one_more_process_says_so() -> None:
    program = """
import os, sys
real, forks = os.fork, []
def fork():
    forks.append(1)
    if len(forks) > 1:
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return real()
os.fork = fork
from placement.runner.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
    run = Run("echo never")
    command = [sys.executable, "-S", "-E", "-s", "-c", program, str(run.dir)]
    subprocess.run(command, cwd=CODE_ROOT, check=True, capture_output=True, timeout=60)
    record = run.ended()
    assert record.start_error is not None
    assert record.start_error.startswith("could not start: process limit reached (EAGAIN)")
