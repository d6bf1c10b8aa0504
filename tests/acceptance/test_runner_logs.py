"""Logs without end, and disks without room."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from placement.runner import stop_request
from placement.runner.launch import CODE_ROOT
from placement.runner.limits import NOTICE
from placement.runner.status import look
from tests.acceptance.runner_run import Run, end_all
from tests.wait import until


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    end_all()


def test_a_log_without_end_keeps_its_head_and_tail_and_the_job_lives() -> None:
    limit = 4 << 20
    run = Run("echo first; yes | head -c 300000000; echo last; exit 6", log_limit_bytes=limit).start()
    record = run.ended()
    assert (record.code, record.stopped_by) == (6, None)
    path = run.dir / "stdout.log"
    length = len(b"first\n") + 300000000 + len(b"last\n")
    assert (record.log.stdout_bytes, path.stat().st_size) == (length, length)
    assert path.stat().st_blocks * 512 <= limit
    assert record.log.trimmed_bytes >= 300000000 - limit
    with path.open("rb") as log:
        head = log.read(limit // 4 + len(NOTICE) + 8)
        log.seek(-limit // 4, os.SEEK_END)
        tail = log.read()
    assert head.startswith(b"first\ny\ny\n")
    assert head.count(NOTICE) == 1
    assert b"\0" not in tail
    assert tail.endswith(b"y\nlast\n")


def test_an_exit_code_finds_its_place_whatever_stands_there() -> None:
    run = Run("echo up; exit 6")
    (run.control / "exit.json").mkdir()
    (run.control / "exit.json" / "in the way").touch()
    run.start()
    assert run.ended().code == 6
    (aside,) = run.control.glob("exit.json.*.aside")
    assert (aside / "in the way").exists()


def test_a_full_disk_at_the_start_is_a_start_error_and_in_mid_run_is_none() -> None:
    program = """
import os, sys
real = os.fsync
def fsync(descriptor):
    name = os.readlink(f"/proc/self/fd/{descriptor}")
    if os.path.basename(name).startswith(sys.argv[1]) and os.path.exists(sys.argv[2]):
        raise OSError(28, "No space left on device")
    real(descriptor)
os.fsync = fsync
from placement.runner.__main__ import main
sys.exit(main(sys.argv[3:]))
"""
    for name, code, error in (("exit.json", 6, None), ("started.json", None, "started.json cannot be written")):
        run = Run("echo up; exit 6")
        full = run.home / "full"
        full.touch()
        command = [sys.executable, "-S", "-E", "-s", "-c", program, name, str(full), str(run.dir)]
        subprocess.run(command, cwd=CODE_ROOT, check=True, capture_output=True, timeout=60)
        if name == "exit.json":
            until(lambda r=run: (r.control / "runner.log").read_bytes(), 20, "the runner's note")
            assert look(run.dir).exit is None
        full.unlink()
        record = run.ended()
        assert record.code == code
        assert (error is None) == (record.start_error is None)
        assert error is None or error in (record.start_error or "")


def test_a_full_disk_does_not_keep_a_run_from_being_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    run = Run("echo up; sleep 300").start()
    unborn = Run("echo never")
    run.wait_for_log(b"up")
    monkeypatch.setattr(stop_request, "write_record", refuse)
    assert stop_request.request_stop(run.dir, "cancel") == "signalled"
    with pytest.raises(OSError, match="No space"):
        stop_request.request_stop(unborn.dir, "cancel")
    assert run.ended().stopped_by == "signal"
