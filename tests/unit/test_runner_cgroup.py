from __future__ import annotations

import os
from pathlib import Path

import pytest

from placement.runner import cgroup
from placement.runner.cgroup import NONE, Group
from placement.runner.containment import Held, Plan, hold, parse_plan, read_held, write_held
from placement.runner.record import ExitRecord, exit_fields, read_exit
from placement.runner.scopes import unified_path
from tests.fake_cgroup import V1, FakeCgroup

MIB = 1 << 20


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCgroup:
    return FakeCgroup(tmp_path / "cgroup", monkeypatch)


def group_in(tree: FakeCgroup, name: str = "job") -> Group:
    path = str(tree.root / name)
    group = Group(path, path, 2)
    cgroup.make(group)
    return group


def test_a_breach_of_the_limit_ends_the_whole_group_and_swap_is_no_way_out(tree: FakeCgroup) -> None:
    group = group_in(tree)
    cgroup.set_limit(group, 100 * MIB)
    assert (tree.read("job/memory.max"), tree.read("job/memory.swap.max")) == (str(100 * MIB), "0")
    assert tree.read("job/memory.oom.group") == "1"
    assert cgroup.limit_of(group) == 100 * MIB


def test_a_limit_that_is_lifted_reads_as_none(tree: FakeCgroup) -> None:
    group = group_in(tree)
    cgroup.set_limit(group, None)
    assert tree.read("job/memory.max") == "max"
    assert cgroup.limit_of(group) is None


def test_a_kernel_without_swap_files_takes_the_limit_all_the_same(tree: FakeCgroup) -> None:
    group = group_in(tree)
    (tree.root / "job/memory.swap.max").unlink()
    cgroup.set_limit(group, 5 * MIB)
    assert cgroup.limit_of(group) == 5 * MIB


def test_the_need_is_anonymous_shared_and_kernel_memory_and_no_file_cache(tree: FakeCgroup) -> None:
    group = group_in(tree)
    tree.put("job/memory.stat", "anon 300\nfile 9000\nkernel 70\nshmem 40\nslab_reclaimable 30\n")
    assert cgroup.need(group) == 300 + 40 + (70 - 30)
    tree.put("job/memory.stat", "nothing 1\n")
    assert cgroup.need(group) is None


def test_only_the_own_limit_counts_as_reached(tree: FakeCgroup) -> None:
    group = group_in(tree)
    tree.put("job/memory.events", "oom 3\noom_kill 2\noom_group_kill 1\n")
    tree.put("job/memory.events.local", "oom 0\noom_kill 2\n")
    tree.put("job/memory.peak", "77\n")
    found = cgroup.figures(group)
    assert found == {
        "path": group.path,
        "version": 2,
        "memory_max": None,
        "oom": 0,
        "oom_kill": 2,
        "oom_group_kill": 1,
        "memory_peak": 77,
    }
    assert cgroup.killed_for_memory(group)


def test_version_1_limits_memory_and_swap_whichever_way_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = FakeCgroup(tmp_path / "memory", monkeypatch, V1)
    group = Group("", str(tree.root / "job"), 1)
    cgroup.make(group)
    assert cgroup.limit_of(group) is None
    cgroup.set_limit(group, 100 * MIB)
    assert tree.read("job/memory.limit_in_bytes") == tree.read("job/memory.memsw.limit_in_bytes") == str(100 * MIB)
    tree.put("job/memory.stat", "total_rss 300\ntotal_shmem 40\ntotal_cache 999\n")
    assert cgroup.need(group) == 340
    tree.put("job/memory.oom_control", "oom_kill_disable 0\noom_kill 1\n")
    tree.put("job/memory.max_usage_in_bytes", f"{60 * MIB}\n")
    assert cgroup.figures(group)["oom"] == 0  # type: ignore[index]
    tree.put("job/memory.max_usage_in_bytes", f"{99 * MIB}\n")
    assert cgroup.figures(group)["oom"] == 1  # type: ignore[index]


def test_groups_that_the_job_made_are_listed_and_removed_with_it(tree: FakeCgroup) -> None:
    group = group_in(tree)
    os.mkdir(f"{group.path}/inner")
    tree.put("job/cgroup.procs", "500\n")
    tree.put("job/inner/cgroup.procs", "0\n501\n")
    tree.put("job/cgroup.events", "populated 1\n")
    assert cgroup.pids(group) == [500, 501]
    assert cgroup.populated(group)
    assert cgroup.kill(group)
    assert tree.read("job/cgroup.kill") == "1"
    assert cgroup.remove(group)
    assert not (tree.root / "job").exists()
    assert cgroup.remove(group)


def test_nothing_can_be_done_with_no_group() -> None:
    assert not cgroup.kill(NONE)
    assert not cgroup.populated(NONE)
    assert not cgroup.killed_for_memory(NONE)
    assert cgroup.pids(NONE) == []
    assert cgroup.figures(NONE) is None
    with pytest.raises(OSError):
        cgroup.set_limit(NONE, 1)


def test_a_held_child_goes_into_its_group_and_the_record_says_so(tree: FakeCgroup, tmp_path: Path) -> None:
    plan = Plan("direct", "tidegate-ab-7-1", base=str(tree.root), limit=MIB)
    held = hold(plan, 10, 4711)
    assert held == Held("direct", Group(f"{tree.root}/tidegate-ab-7-1", f"{tree.root}/tidegate-ab-7-1", 2), MIB)
    assert tree.read("tidegate-ab-7-1/cgroup.procs") == "4711"
    (tmp_path / "control").mkdir()
    write_held(str(tmp_path), held)
    assert read_held(tmp_path) == held


def test_a_group_that_takes_no_limit_is_kept_for_what_else_it_does(tree: FakeCgroup) -> None:
    del tree.files["memory.max"]
    held = hold(Plan("direct", "job", base=str(tree.root), limit=MIB), 10, 4711)
    assert held is not None
    assert (held.kind, held.limit, held.why) == (
        "tree",
        None,
        "its control group takes no limit: No such file or directory",
    )
    tree.files["memory.max"] = "max\n"


def test_a_scope_that_systemd_refuses_leaves_the_run_watched() -> None:
    asked: list[list[str]] = []

    def refuse(command: object) -> str:
        asked.append(list(command))  # type: ignore[call-overload]
        return "Access denied"

    held = hold(Plan("user", "job", scope="user", limit=MIB), 10, 4711, refuse)
    assert held == Held("watched", NONE, None, "no control group: systemd refuses a scope: Access denied")
    (command,) = asked
    assert "--user" in command
    assert command[command.index("StartTransientUnit") + 2] == "job.scope"
    assert command[command.index("PIDs") + 1 :][:4] == ["au", "2", "10", "4711"]
    assert "Delegate" in command


def test_a_scope_has_a_leaf_for_the_job_and_one_for_its_runner(
    tree: FakeCgroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkdir(tree.root / "tidegate.slice")
    os.mkdir(tree.root / "tidegate.slice/job.scope")
    monkeypatch.setattr("placement.runner.scopes.unified_path", lambda pid, proc="": "/tidegate.slice/job.scope")
    held = hold(Plan("scope", "job", scope="system", limit=MIB, root=str(tree.root)), 10, 4711, lambda command: "")
    top = "tidegate.slice/job.scope"
    assert held is not None
    assert held.group.path == f"{tree.root}/{top}/job"
    assert tree.read(f"{top}/job/cgroup.procs") == "4711"
    assert tree.read(f"{top}/runner/cgroup.procs") == "10"
    assert tree.read(f"{top}/cgroup.subtree_control") == "+memory"
    assert tree.read(f"{top}/job/memory.max") == str(MIB)


@pytest.mark.parametrize(
    "fields", [None, [], {}, {"kind": 3}, {"kind": "direct", "name": "../up"}, {"kind": "a", "base": 1}]
)
def test_a_plan_that_is_none_is_no_plan(fields: object) -> None:
    assert parse_plan(fields) is None


def test_a_plan_comes_back_from_its_fields() -> None:
    plan = Plan("v1", "name", "/a", "/b", limit=7)
    assert parse_plan(plan._asdict() | {"later": 1}) == plan
    assert parse_plan(plan._asdict() | {"limit": 0}) == plan._replace(limit=None)


def test_where_a_process_is_comes_from_the_unified_line(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_text("4:memory:/other\n0::/tidegate.slice/x\n")
    assert unified_path(7, str(tmp_path)) == "/tidegate.slice/x"
    assert unified_path(8, str(tmp_path)) == ""


def test_the_exit_record_keeps_what_the_group_said(tmp_path: Path) -> None:
    (tmp_path / "control").mkdir()
    from placement.runner.jsonfile import control_path, write_record

    said = {
        "path": "/g",
        "version": 2,
        "oom": 1,
        "oom_kill": 1,
        "oom_group_kill": None,
        "memory_max": 5,
        "memory_peak": 4,
    }
    write_record(control_path(tmp_path, "exit.json"), exit_fields(ExitRecord(7, 1, "b", cgroup=said)))
    assert read_exit(tmp_path).cgroup == said  # type: ignore[union-attr]
