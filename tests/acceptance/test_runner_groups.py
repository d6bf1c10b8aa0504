"""Runs in control groups of the kernel that is here: the limit that ends one, and what only the group still knows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.runner import cgroup
from placement.runner.cgroup import NONE
from placement.runner.containment import Plan, group_of_run, read_held
from placement.runner.identity import alive, identify, read_stat
from placement.runner.ladder import WATCHED, choose
from placement.runner.members import kill_members, members
from placement.runner.record import read_exit, read_started
from placement.runner.status import Phase, look
from placement.runner.stop_request import request_stop
from tests.acceptance.runner_run import STORM, Run, end_all
from tests.wait import until

MIB = 1 << 20
_HOG = "b = b'x' * ({mib} << 20); print('got it', flush=True); import time; time.sleep(300)"
_DAEMON = """
import os, time
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.execve('/bin/sleep', ['unrelated', '300'], {})
"""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return choose().plan


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    groups: list[Run] = []
    _started.append(groups)
    yield
    kept = [group_of_run(run.dir) for run in groups]
    end_all()
    for group in kept:
        until(lambda group=group: cgroup.remove(group), 5, f"the removal of {group}")
    _started.pop()


_started: list[list[Run]] = []


def run_in(plan: Plan, command: str | None = None, limit: int | None = None, **fields: object) -> Run:
    name = f"tidegate-test-{os.getpid()}-{len(_started[-1])}"
    run = Run(command, containment=plan._replace(name=name, limit=limit)._asdict(), **fields)
    _started[-1].append(run)
    return run.start()


def hog(mib: int) -> str:
    return f'{sys.executable} -c "{_HOG.format(mib=mib)}"'


def limited(plan: Plan) -> None:
    if plan.kind == WATCHED:
        pytest.skip("nothing on this machine keeps a group in its memory")


def grouped(plan: Plan) -> None:
    if not plan.base and not plan.scope:
        pytest.skip("no groups can be made on this machine")


def test_who_takes_200_mb_under_100_is_ended_and_the_neighbour_and_both_runners_go_on(plan: Plan) -> None:
    limited(plan)
    neighbour = run_in(plan, f"{hog(150)} & wait", 400 * MIB)
    neighbour.wait_for_log(b"got it")

    # The shell would go on after its child's death: half a run.
    run = run_in(plan, f"{hog(200)}; echo went on; sleep 300", 100 * MIB)
    record = run.ended()

    assert record.cgroup is not None
    assert record.cgroup["oom"] > 0
    assert record.cgroup["oom_kill"] > 0
    assert record.cgroup["memory_max"] == 100 * MIB
    assert 90 * MIB < record.cgroup["memory_peak"] <= 100 * MIB
    assert (record.signal, record.stopped_by) == (signal.SIGKILL, None)
    assert b"got it" not in run.log()
    held = read_held(neighbour.dir)
    assert held is not None
    assert held.limit == 400 * MIB
    assert alive(neighbour.started.runner)
    assert 150 * MIB < (cgroup.need(held.group) or 0) < 200 * MIB


def test_the_runner_is_outside_and_the_command_never_runs_elsewhere(plan: Plan) -> None:
    grouped(plan)
    run = run_in(plan, "cat /proc/self/cgroup; echo up; sleep 300")
    run.wait_for_log(b"up")
    group = group_of_run(run.dir)
    inside = cgroup.pids(group)

    assert run.started.child.pid in inside
    assert run.started.runner.pid not in inside
    assert f"0::{Path(group.path).as_posix().removeprefix(_top(plan))}".encode() in run.log()


def _top(plan: Plan) -> str:
    return plan.root if os.path.exists(f"{plan.root}/cgroup.controllers") else f"{plan.root}/unified"


def test_a_limit_can_be_raised_while_it_runs(plan: Plan) -> None:
    limited(plan)
    run = run_in(plan, f"until [ -e go ]; do sleep 0.05; done; {hog(150)}", 100 * MIB)
    group = group_of_run(run.dir)
    assert cgroup.limit_of(group) == 100 * MIB
    cgroup.set_limit(group, 300 * MIB)
    assert cgroup.limit_of(group) == 300 * MIB
    (run.home / "go").touch()
    run.wait_for_log(b"got it")


@pytest.mark.parametrize("grace_s", [0.0, 0.3])
def test_a_daemon_without_parents_session_or_marks_ends_with_its_run(plan: Plan, grace_s: float) -> None:
    grouped(plan)
    run = run_in(plan, f'{sys.executable} -c "{_DAEMON}"; echo up; trap "" TERM; sleep 300', grace_s=grace_s)
    run.wait_for_log(b"up")
    group = group_of_run(run.dir)
    daemon = until(
        lambda: next((p for p in cgroup.pids(group) if _name(p) == "sleep" and _alone(p)), 0), 5, "the daemon"
    )
    identity = identify(daemon)
    request_stop(run.dir, "cancel")
    record = run.ended(5)

    assert identity is not None
    assert not alive(identity)
    assert record.killed
    assert not cgroup.populated(group)


@pytest.mark.parametrize("reason", ["cancel", "watchdog"])
def test_a_storm_in_a_group_ends_with_it(plan: Plan, reason: str) -> None:
    grouped(plan)
    run = run_in(plan, argv=[*STORM, "setsid", "60"], grace_s=0.3)
    growth = run.home / "growth"
    until(lambda: growth.exists() and growth.stat().st_size > 500, 20, "a storm")
    group = group_of_run(run.dir)
    assert len(cgroup.pids(group)) > 20
    began = time.monotonic()
    request_stop(run.dir, reason)
    record = run.ended(10)
    assert time.monotonic() - began < 0.3 + 2
    assert record.killed
    assert not cgroup.populated(group)


def test_who_was_moved_into_the_group_ends_with_it(plan: Plan) -> None:
    grouped(plan)
    with subprocess.Popen(["/bin/sleep", "300"]) as stranger:
        run = run_in(plan, "echo up; until [ -e go ]; do sleep 0.05; done")
        run.wait_for_log(b"up")
        cgroup.join(group_of_run(run.dir), stranger.pid)
        (run.home / "go").touch()
        assert stranger.wait(60) == -signal.SIGKILL
        assert run.ended(5).code == 0


def test_when_its_runner_was_killed_too_the_group_still_knows_it(plan: Plan) -> None:
    grouped(plan)
    run = run_in(plan, f'{sys.executable} -c "{_DAEMON}"; echo up; sleep 300')
    run.wait_for_log(b"up")
    group = group_of_run(run.dir)
    daemon = until(
        lambda: next((p for p in cgroup.pids(group) if _name(p) == "sleep" and _alone(p)), 0), 5, "the daemon"
    )
    kill_members([run.started.runner], signal.SIGKILL)
    until(lambda: not alive(run.started.runner), 5, "the runner's end")
    kill_members([run.started.child], signal.SIGKILL)
    started = read_started(run.dir)
    assert started is not None

    assert look(run.dir).phase is Phase.UNSUPERVISED
    assert daemon in {member.pid for member in members(started, group)}
    assert daemon not in {member.pid for member in members(started)}
    request_stop(run.dir, "cancel", 0.0)
    until(lambda: look(run.dir).phase is Phase.LOST, 5, "the end of all of it")


def test_where_no_group_can_be_made_the_run_goes_on_and_says_so(tmp_path: Path) -> None:
    plan = Plan("direct", base=str(tmp_path / "nowhere"))
    run = run_in(plan, "echo ran", 100 * MIB)
    record = run.ended()
    held = read_held(run.dir)

    assert (record.code, record.cgroup) == (0, None)
    assert run.log() == b"ran\n"
    assert held is not None
    assert (held.kind, held.group, held.limit) == (WATCHED, NONE, None)
    assert held.why == "no control group: No such file or directory"


def test_a_run_without_a_plan_has_no_record_of_a_group() -> None:
    run = Run("echo ran").start()
    run.ended()
    assert read_held(run.dir) is None
    assert read_exit(run.dir).cgroup is None  # type: ignore[union-attr]


def _name(pid: int) -> str:
    stat = read_stat(pid)
    return stat.name if stat else ""


def _alone(pid: int) -> bool:
    """Return whether nothing is left in its environment: the one that was started with none."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes() == b""
    except OSError:
        return False
