"""Jobs under accounts of their own: two uids that no person has. Only root can change to them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from placement.runner.launch import CODE_ROOT
from placement.runner.stop_request import request_stop
from tests.acceptance.runner_run import Run, end_all

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: only root may start jobs as others")

ADA = {"name": "tidegate-ada", "uid": 20001, "gid": 20001, "groups": [20001, 20009], "home": "/home/ada"}
BOB = {"name": "tidegate-bob", "uid": 20002, "gid": 20002, "groups": [20002], "home": "/home/bob"}


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    end_all()


def as_ada(command: str, **fields: Any) -> Run:
    return Run(command, account=ADA, cwd="/", **fields)


def test_the_command_alone_drops_to_the_account() -> None:
    run = as_ada("id -u; id -g; id -G; echo $HOME $USER; sleep 300; exit 1").start()
    run.wait_for_log(b"tidegate-ada")
    assert run.log() == b"20001\n20001\n20001 20009\n/home/ada tidegate-ada\n"
    assert os.stat(f"/proc/{run.started.runner.pid}").st_uid == 0
    assert os.stat(f"/proc/{run.started.child.pid}").st_uid == 20001


def test_an_account_cannot_read_its_spec_forge_its_outcome_or_regain_root() -> None:
    run = as_ada(
        'D=/proc/self/fd/1; R=$(dirname "$(readlink /proc/$$/fd/1)"); '
        'cat "$R/control/spec.json"; echo "{}" > "$R/control/exit.json"; rm -rf "$R/control"; ls "$R"; '
        'python3 -c "import os; os.setuid(0)"; kill -9 $PPID; exit 7'
    ).start()
    record = run.ended()
    assert (record.code, record.signal) == (7, None)
    assert run.log() == b""
    assert (run.control / "spec.json").exists()
    said = run.log("stderr")
    assert said.count(b"ermission denied") + said.count(b"ot permitted") >= 5


def test_one_account_cannot_read_the_others_log_or_end_its_job() -> None:
    ada = as_ada("echo secret; sleep 300").start()
    ada.wait_for_log(b"secret")
    pid = ada.started.child.pid
    command = f"cat {ada.dir}/stdout.log; cat /proc/{pid}/fd/1; cat /proc/{pid}/environ; kill -9 {pid}; exit 0"
    bob = Run(command, account=BOB, cwd="/").start()
    assert bob.ended().code == 0
    assert bob.log() == b""
    assert os.stat(f"/proc/{pid}").st_uid == 20001


def test_the_working_directory_is_entered_as_the_account() -> None:
    run = Run("pwd; touch made", account=ADA)
    own = run.home / "own"
    own.mkdir(mode=0o700)
    os.chown(own, 20001, 20001)
    spec = run.control / "spec.json"
    spec.write_text(spec.read_text().replace(f'"cwd": "{run.home}"', f'"cwd": "{own}"'))
    run.start()
    assert run.ended().code == 0
    assert run.log().decode() == f"{own}\n"
    assert (own / "made").stat().st_uid == 20001

    closed = Run("true", account=BOB, cwd=str(own)).start()
    error = closed.ended().start_error
    assert error == f"could not start: tidegate-bob may not enter the working directory {own}"


def test_the_log_belongs_to_the_account_so_that_dev_stderr_works() -> None:
    run = as_ada("echo to-stderr > /dev/stderr; echo to-stdout >> /dev/stdout").start()
    assert run.ended().code == 0
    assert run.log("stderr") == b"to-stderr\n"
    assert run.log() == b"to-stdout\n"
    assert (run.dir / "stdout.log").stat().st_uid == 20001


def test_a_job_of_an_account_that_resists_is_ended() -> None:
    run = as_ada(
        "trap '' TERM; setsid -f sleep 300; echo up; while ((SECONDS < 90)); do sleep 0.05; done",
        grace_s=0.2,
    ).start()
    run.wait_for_log(b"up")  # sooner it does not resist yet
    request_stop(run.dir, "cancel")
    record = run.ended()
    assert (record.stopped_by, record.killed) == ("cancel", True)


def test_a_service_that_is_not_root_says_that_it_may_not() -> None:
    run = as_ada("echo never")
    for path in (run.dir, run.control, run.control / "spec.json"):
        os.chown(path, 20002, 20002)
    program = """
import os, sys
from placement.runner.__main__ import main
os.setgroups([])
os.setresgid(20002, 20002, 20002)
os.setresuid(20002, 20002, 20002)
sys.exit(main(sys.argv[1:]))
"""
    command = [sys.executable, "-S", "-E", "-s", "-c", program, str(run.dir)]
    subprocess.run(command, cwd=CODE_ROOT, check=True, capture_output=True, timeout=60)
    error = run.ended().start_error
    assert error == ("could not start: the service may not run commands as tidegate-ada: Operation not permitted")
    assert (run.control / "exit.json").stat().st_uid == 20002
