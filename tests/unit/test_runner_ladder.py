from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from placement.runner import containment, ladder
from placement.runner.ladder import Machine, choose
from tests.fake_cgroup import V1, FakeCgroup


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCgroup:
    return FakeCgroup(tmp_path / "cgroup", monkeypatch)


def machine(tree: FakeCgroup, own: str = "/", **more: object) -> Machine:
    """Return a machine whose process table puts this process into ``own``."""
    proc = tree.root.parent / "proc"
    for who in ("self", str(os.getpid())):
        (proc / who).mkdir(parents=True, exist_ok=True)
        (proc / who / "cgroup").write_text(f"0::{own}\n")
    fields = {"root": str(tree.root), "proc": str(proc), "systemd": str(tree.root.parent / "no"), "euid": 0}
    return Machine(**(fields | more))  # type: ignore[arg-type]


def refuse(command: Sequence[str]) -> str:
    return "Access denied"


def test_root_at_the_top_of_a_machine_without_systemd_makes_groups_itself(tree: FakeCgroup) -> None:
    (tree.root / "cgroup.type").unlink()
    found = choose(machine=machine(tree))
    assert (found.plan.kind, found.plan.base) == ("direct", f"{tree.root}/tidegate.slice")
    assert found.tried == (("scope", "systemd does not run this machine"),)
    assert tree.read("cgroup.subtree_control") == tree.read("tidegate.slice/cgroup.subtree_control") == "+memory"
    assert not [entry for entry in os.listdir(f"{tree.root}/tidegate.slice") if entry.startswith("tidegate-probe")]


def test_in_a_container_the_processes_move_to_a_leaf_first(tree: FakeCgroup) -> None:
    tree.put("cgroup.procs", "1\n77\n")
    moved = machine(tree)
    said = dict(choose(machine=moved._replace(settle=False)).tried)
    assert said["container"] == f"{tree.root} holds processes; the worker moves them to a leaf when it starts"
    assert tree.read("cgroup.procs") == "1\n77"

    found = choose(machine=moved)
    assert found.plan.kind == "container"
    assert tree.read("service/cgroup.procs") in ("1", "77", "77\n")  # a plain file keeps the last alone


def test_a_delegated_group_is_used_by_an_account_that_is_not_root(tree: FakeCgroup) -> None:
    os.mkdir(tree.root / "tidegate.service")
    found = choose(machine=machine(tree, "/tidegate.service", euid=1000))
    assert (found.plan.kind, found.plan.base) == ("delegated", f"{tree.root}/tidegate.service/tidegate.slice")
    assert choose(machine=machine(tree, "/tidegate.service/service", euid=1000)).plan == found.plan


def test_a_limit_that_reads_back_as_another_is_no_limit(tree: FakeCgroup, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree.root / "cgroup.type").unlink()
    monkeypatch.setattr(ladder.cgroup, "limit_of", lambda group: None)
    found = choose(machine=machine(tree))
    assert found.plan.kind == "watched"
    assert dict(found.tried)["direct"] == "a limit of 67108864 bytes reads back as None"


def test_a_scope_that_systemd_refuses_is_told_and_the_next_rung_tried(tree: FakeCgroup) -> None:
    systemd = tree.root.parent / "systemd"
    systemd.mkdir()
    here = machine(tree, "/user.slice", systemd=str(systemd), run=refuse)
    said = dict(choose(machine=here).tried)
    assert said["scope"] == "no control group: systemd refuses a scope: Access denied"
    assert said["direct"] == "systemd rules the groups of this machine"
    assert dict(choose(machine=here._replace(euid=1000)).tried)["scope"].startswith("only root")


def test_an_account_that_root_serves_asks_there(tree: FakeCgroup, monkeypatch: pytest.MonkeyPatch) -> None:
    systemd, listens = tree.root.parent / "systemd", tree.root.parent / "scopes-1000.sock"
    systemd.mkdir()
    here = machine(tree, "/user.slice", systemd=str(systemd), euid=1000)
    for module in (ladder, containment):
        monkeypatch.setattr(module, "socket_of", lambda uid: str(listens))
    assert "units --scopes" in dict(choose(machine=here).tried)["scope"]
    listens.touch()
    said = dict(choose(machine=here).tried)["scope"]
    assert said == f"no control group: systemd refuses a scope: {listens}: [Errno 111] Connection refused"


def test_version_1_goes_as_high_as_nothing_limits_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = FakeCgroup(tmp_path / "cgroup", monkeypatch, V1)
    for folder in ("memory", "memory/box", "memory/box/session"):
        os.mkdir(tree.root / folder)
    here = machine(tree)
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/box/session\n0::/\n")
    assert choose(machine=here).plan.memory == f"{tree.root}/memory/tidegate.slice"
    tree.put("memory/box/memory.limit_in_bytes", "1000000000\n")
    assert choose(machine=here).plan.memory == f"{tree.root}/memory/box/tidegate.slice"


def test_one_that_is_asked_for_is_had_or_none(tree: FakeCgroup) -> None:
    (tree.root / "cgroup.type").unlink()
    assert choose("watched", machine(tree)).plan.kind == "watched"
    found = choose("v1", machine(tree))
    assert (found.plan.kind, found.tried) == ("watched", (("v1", "main memory is not governed by cgroup v1"),))


def test_a_machine_without_groups_is_watched(tmp_path: Path) -> None:
    here = Machine(str(tmp_path / "none"), str(tmp_path / "proc"), str(tmp_path / "no"), 1000)
    found = choose(machine=here)
    assert (found.plan.kind, found.plan.base) == ("watched", "")
    assert [kind for kind, _ in found.tried] == ["scope", "direct", "user", "delegated", "container", "v1"]
