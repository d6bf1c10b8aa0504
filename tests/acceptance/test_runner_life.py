"""A run from its launch to its exit record, with real processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from placement.runner.identity import Identity, alive, read_boot_id, read_stat
from placement.runner.launch import CODE_ROOT
from placement.runner.record import claim
from placement.runner.signals import signal_member
from placement.runner.status import Phase, look
from placement.runner.stop_request import kill_members, members, request_stop
from tests.acceptance.runner_run import Run, end_all
from tests.wait import until


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    end_all()


def test_a_command_runs_with_what_the_spec_says_and_nothing_else() -> None:
    run = Run(
        "pwd; env | sort; umask; cat; cat /proc/self/oom_score_adj; ls -l /proc/$$/fd; echo oops >&2; exit 3",
        env={"PATH": os.environ["PATH"], "CUDA_VISIBLE_DEVICES": "", "NAME": "b c"},
        umask=0o027,
    ).start()
    record = run.ended()
    lines = run.log().decode().splitlines()
    assert lines[0] == str(run.home)
    assert {"CUDA_VISIBLE_DEVICES=", "NAME=b c"} <= set(lines)
    assert not [line for line in lines if line.startswith(("LC_ALL=", "VIRTUAL_ENV=", "PYTEST"))]
    assert {"0027", "500"} <= set(lines)
    open_files = {line.split()[8]: line.split()[-1] for line in lines if " -> " in line}
    assert open_files.pop("0") == "/dev/null"
    assert open_files.pop("1") == str(run.dir / "stdout.log")
    assert open_files.pop("2") == str(run.dir / "stderr.log")
    assert set(open_files) <= {"255"}  # bash's own
    assert run.log("stderr") == b"oops\n"
    assert (record.job_id, record.attempt, record.code, record.signal) == (7, 1, 3, None)
    assert (record.start_error, record.stopped_by, record.killed, record.swept) == (None, None, False, False)
    assert record.log.stdout_bytes == len(run.log())
    assert record.started_at is not None
    assert record.ended_at is not None
    assert record.max_rss_bytes is not None
    assert record.max_rss_bytes > 1 << 20
    status = look(run.dir)
    assert (status.phase, status.exit) == (Phase.EXITED, record)
    assert oct((run.dir / "stdout.log").stat().st_mode & 0o777) == "0o640"
    assert {oct(path.stat().st_mode & 0o777) for path in run.control.iterdir() if path.name != "spec.json"} == {"0o600"}


def test_an_argument_list_is_not_read_by_a_shell() -> None:
    run = Run(argv=["printf", "%s|", "a b", "$HOME", "caf\udce9"]).start()
    assert run.ended().code == 0
    assert run.log() == b"a b|$HOME|caf\xe9|"


def test_the_runner_is_nobodys_child_small_and_leads_its_own_session() -> None:
    run = Run("read line < /dev/zero").start()
    runner, child = run.started.runner, run.started.child
    stat = read_stat(runner.pid)
    assert stat is not None
    assert stat.ppid != os.getpid()
    assert stat.sid == stat.pgid == runner.pid
    child_stat = read_stat(child.pid)
    assert child_stat is not None
    assert (child_stat.pgid, child_stat.ppid) == (child.pid, runner.pid)
    status = Path(f"/proc/{runner.pid}/status").read_text()
    resident_kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    assert resident_kib <= 12 * 1024
    assert os.readlink(f"/proc/{runner.pid}/cwd") == "/"
    assert look(run.dir).phase is Phase.RUNNING


@pytest.mark.parametrize(
    "setup, command, code, out, err",
    [
        ("export A=1; B='two words'", 'echo "$A $B"', 0, b"1 two words\n", b""),
        ("source ./nothing.sh", "echo never", 1, b"", b"the set-up line failed with code 1; the command was not run"),
        ("(exit 9)", "echo never", 9, b"", b"failed with code 9"),
        ("}", "echo never", 127, b"", b"failed with code"),
        ("true", 'echo "$# $0"; false', 1, b"0 bash\n", b""),
    ],
)  # fmt: skip
def test_the_setup_line_comes_first_and_its_failure_is_the_jobs(
    setup: str, command: str, code: int, out: bytes, err: bytes
) -> None:
    run = Run(command, setup=setup).start()
    record = run.ended()
    assert run.log() == out
    assert err in run.log("stderr")
    assert record.code == (record.code if setup == "}" else code)
    assert (record.code != 0) == (code != 0)


def test_the_setup_line_serves_an_argument_list_too() -> None:
    run = Run(argv=["printf", "%s-%s", "a b", "c"], setup="echo ready").start()
    assert run.ended().code == 0
    assert run.log() == b"ready\na b-c"


def test_the_command_ends_the_job_whoever_holds_its_output() -> None:
    run = Run("echo done; (sleep 300 &); exit 0").start()
    assert run.leader().code == 0
    assert run.log() == b"done\n"
    record = run.ended()
    assert (record.code, record.swept, record.killed) == (0, True, False)
    assert len(record.leftovers) == 1


def test_children_that_outlive_the_command_are_listed_held_and_swept() -> None:
    made = "(setsid sh -c 'echo > a; read x < never' >/dev/null 2>&1 &); setsid -f sh -c 'echo > b; read x < never'"
    there = "until [ -e a ] && [ -e b ]; do sleep 0.01; done"
    run = Run(f"mkfifo never; {made}; {there}; exit 3", sweep_grace_s=1).start()
    leader = run.leader()
    assert leader.code == 3
    assert {member.name for member in leader.left} == {"sh"}
    assert leader.left_count == 2
    assert all(member.rss_bytes for member in leader.left)
    assert look(run.dir).phase is Phase.FINISHING
    record = run.ended()
    assert (record.code, record.swept, len(record.leftovers)) == (3, True, 2)
    assert not any(alive(Identity(m.pid, m.start_ticks, record.boot_id)) for m in record.leftovers)


def test_kept_children_end_the_run_when_they_end() -> None:
    run = Run("setsid -f sleep 1.2; exit 0", sweep="keep", sweep_grace_s=0).start()
    record = run.ended()
    assert (record.code, record.swept, record.killed) == (0, False, False)
    assert record.duration_s is not None
    assert record.duration_s >= 1.1


def test_output_that_is_no_text_arrives_as_it_is() -> None:
    run = Run(r"printf 'ok\n\377\376\000\300 end\n'; printf '\342\202'; sleep 0.1; printf '\254\n'").start()
    assert run.ended().code == 0
    assert run.log() == b"ok\n\xff\xfe\x00\xc0 end\n\xe2\x82\xac\n"


def test_a_run_survives_the_death_of_its_launchers_whole_group() -> None:
    run = Run("echo up; while [ ! -e go ]; do sleep 0.05; done; exit 5")
    program = (
        "import sys, time; from placement.runner.launch import launch; "
        "print(launch(sys.argv[1]).message, flush=True); time.sleep(60)"
    )
    launcher = subprocess.Popen(
        [sys.executable, "-c", program, str(run.dir)], cwd=CODE_ROOT, stdout=subprocess.PIPE, start_new_session=True
    )
    assert launcher.stdout is not None
    assert launcher.stdout.readline().startswith(b"started: runner ")
    os.killpg(launcher.pid, signal.SIGKILL)
    launcher.wait()
    launcher.stdout.close()
    assert look(run.dir).phase is Phase.RUNNING
    (run.home / "go").touch()
    assert run.ended().code == 5


def test_two_launches_of_one_attempt_run_one_command() -> None:
    run = Run("echo once; sleep 0.3")
    with ThreadPoolExecutor(4) as pool:
        results = [future.result() for future in [pool.submit(run.launch) for _ in range(4)]]
    assert all(result.ok for result in results)
    assert sorted(result.message.partition(":")[0] for result in results) == [
        *["another runner has this attempt"] * 3,
        "started",
    ]
    assert run.ended().code == 0
    assert run.launch().message == "another runner has this attempt"
    assert run.log() == b"once\n"


def test_a_claimer_that_died_before_the_start_never_ran() -> None:
    run = Run("echo never")
    assert look(run.dir).phase is Phase.NEW
    assert not look(run.dir).claim_dead
    claim(str(run.dir), Identity(os.getpid(), 1, read_boot_id()))
    status = look(run.dir)
    assert (status.phase, status.claim_dead, status.claimer_alive) == (Phase.NEW, True, False)
    assert run.launch().ok
    assert not (run.dir / "stdout.log").exists()


def test_a_job_without_its_runner_is_seen_and_can_be_ended() -> None:
    run = Run("setsid -f sleep 300; (sleep 301 & exec sleep 302)").start()
    until(lambda: len(members(run.started)) >= 3, 20, "three processes")
    signal_member(run.started.runner, signal.SIGKILL)
    until(lambda: look(run.dir).phase is Phase.UNSUPERVISED, 20, "the runner's end")
    assert request_stop(run.dir, "cancel") == "signalled"
    until(lambda: not alive(run.started.child), 20, "the child's end")
    # One that left session, group and parents at once is known only to whoever saw it before.
    until(lambda: kill_members(members(run.started), signal.SIGKILL) == 0, 20, "the end of the others")
    until(lambda: look(run.dir).phase is Phase.LOST, 20, "the run to be lost")
    assert request_stop(run.dir, "cancel") == "already_gone"


def test_another_boot_means_lost() -> None:
    run = Run("true").start()
    run.ended()
    (run.control / "exit.json").unlink()
    path = run.control / "started.json"
    path.write_text(path.read_text().replace(read_boot_id(), "00000000-0000-0000-0000-000000000000"))
    assert look(run.dir).phase is Phase.LOST


def test_the_code_may_be_replaced_while_a_job_runs(tmp_path: Path) -> None:
    root = tmp_path / "code"
    (root / "placement").mkdir(parents=True)
    (root / "placement" / "__init__.py").touch()
    shutil.copytree(
        CODE_ROOT / "placement" / "runner", root / "placement" / "runner", ignore=shutil.ignore_patterns("__pycache__")
    )
    run = Run("(sleep 300 &); while [ ! -e go ]; do sleep 0.05; done; exit 4", sweep_grace_s=0.1)
    assert run.launch(root=root).message.startswith("started: runner ")
    shutil.rmtree(root)
    (run.home / "go").touch()
    record = run.ended()
    assert (record.code, record.swept) == (4, True)
    assert (run.control / "runner.log").read_bytes() == b""


def test_what_the_launcher_blocks_and_ignores_does_not_reach_the_job() -> None:
    run = Run("grep -E '^(SigBlk|SigIgn)' /proc/self/status; kill -TERM $$; echo survived")
    ignored = (signal.SIGINT, signal.SIGCHLD, signal.SIGHUP, signal.SIGUSR1)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ignored}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    try:
        run.launch()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
    record = run.ended()
    assert [int(line.split()[1], 16) for line in run.log().splitlines()] == [0, 0]
    assert (record.code, record.signal, record.stopped_by) == (None, signal.SIGTERM, None)


def test_the_runner_process_loads_nothing_heavy_and_nothing_foreign() -> None:
    program = "import sys, placement.runner.__main__; print(*sorted(sys.modules))"
    command = [sys.executable, "-S", "-E", "-s", "-c", program]
    loaded = subprocess.run(command, cwd=CODE_ROOT, check=True, capture_output=True, text=True).stdout.split()
    assert "placement.runner.attempt" in loaded
    foreign = {name.split(".")[0] for name in loaded} - sys.stdlib_module_names - {"__main__", "placement"}
    assert not foreign
    assert not {"dataclasses", "inspect", "subprocess", "pathlib", "logging", "threading"} & set(loaded)
