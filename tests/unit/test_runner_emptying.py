"""A run is over once its group is empty: whoever was moved there, and however long that takes."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement.runner import cgroup, emptying
from placement.runner.cgroup import NONE, Group
from placement.runner.emptying import empty
from placement.runner.identity import read_boot_id
from tests.fake_cgroup import FakeCgroup


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stranger: subprocess.Popen[bytes]) -> Group:
    """Return a group with one process in it, populated as long as that lives."""
    tree = FakeCgroup(tmp_path / "cgroup", monkeypatch)
    path = str(tree.root / "job")
    made = Group(path, path, 2)
    cgroup.make(made)
    tree.put("job/cgroup.procs", f"{stranger.pid}\n")
    monkeypatch.setattr(cgroup, "populated", lambda group: stranger.poll() is None)
    return made


def test_a_kernel_that_ends_no_group_ends_its_processes(group: Group, stranger: subprocess.Popen[bytes]) -> None:
    os.unlink(f"{group.path}/cgroup.kill")
    empty(group, read_boot_id(), lambda text: None)
    assert stranger.poll() == -9


def test_who_does_not_end_is_told_and_waited_for(
    group: Group, stranger: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emptying, "_TELL_AFTER_S", 0.0)  # the fake's kill ends nobody
    heard: list[str] = []

    def tell(text: str) -> None:
        heard.append(text)
        threading.Timer(0.05, stranger.kill).start()

    empty(group, read_boot_id(), tell)
    assert heard[0] == f"processes of its control group do not end: [{stranger.pid}]"
    assert stranger.poll() == -9


def test_nothing_is_waited_for_without_a_group() -> None:
    empty(NONE, read_boot_id(), lambda text: pytest.fail(text))
