"""Real systemd and real cgroup v2, in a machine of user-mode Linux: what other machines here have no kernel for.

Built once with the distribution's tools (minutes, 300 MB) in ~/.cache/tidegate/uml, then booted.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.uml import machine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
MIB = 1 << 20
KEPT_BY = {"root": "scope", "ada": "user", "bob": "delegated", "cyd": "scope"}


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    lacking = machine.missing()
    if lacking or os.geteuid() != 0:
        pytest.skip(f"needs root and {', '.join(machine.PROGRAMS)} (user-mode-linux, debootstrap, e2fsprogs)")
    folder = Path.home() / ".cache/tidegate/uml"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        root = machine.build(folder)
    except machine.NoSystem as error:
        pytest.skip(f"no machine with systemd can be built: {error}")
    return machine.boot(root, folder)


@pytest.mark.parametrize("who", KEPT_BY)
def test_who_takes_200_mb_under_100_is_ended_whole_and_nobody_else_is(told: dict[str, Any], who: str) -> None:
    found = told[who]
    assert "error" not in found
    assert found["kind"] == found["held"]["kind"] == KEPT_BY[who]
    over = found["over"]
    assert (over["code"], over["signal"], over["stopped_by"]) == (None, signal.SIGKILL, None)
    assert over["cgroup"]["memory_max"] == 100 * MIB
    assert min(over["cgroup"][name] for name in ("oom", "oom_kill", "oom_group_kill")) >= 1
    assert found["neighbour_runs"]
    assert 60 * MIB < found["need"] < 80 * MIB
    assert not found["runner_in_group"]


@pytest.mark.parametrize("who", KEPT_BY)
def test_a_limit_rises_while_it_runs_and_a_cancel_leaves_nothing(told: dict[str, Any], who: str) -> None:
    found = told[who]
    assert found["raised"] == 300 * MIB
    assert found["cancelled"] == {"signal": signal.SIGKILL, "killed": True}
    assert found["removed"]


def test_each_rung_that_was_passed_over_says_why(told: dict[str, Any]) -> None:
    assert [kind for kind, _ in told["root"]["tried"]] == []
    assert [kind for kind, _ in told["ada"]["tried"]] == ["scope", "direct"]
    assert [kind for kind, _ in told["bob"]["tried"]] == ["scope", "direct", "user"]
    assert "enable-linger" in dict(told["bob"]["tried"])["user"]
    assert "units --scopes" in dict(told["bob"]["tried"])["scope"]
    assert told["cyd"]["tried"] == []


def test_all_jobs_together_leave_the_machine_its_reserve(told: dict[str, Any]) -> None:
    assert told["cyd"]["reserve"] == [str(600 * MIB), str(500 * MIB)]


def test_root_makes_scopes_for_one_account_and_around_its_own_processes_alone(told: dict[str, Any]) -> None:
    said = told["cyd"]["asked"]
    assert "Permission denied" in said["another"]
    assert said["init"] == "1 is no process"
    assert "is not a child of the one that asks" in said["beside"]
