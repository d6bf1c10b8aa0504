"""The driver's own limit on a container: on the group that its engine made, once a process of it tells which."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calibration.domain.samples import Identity, Reading
from placement.services import capping, lifecycle
from tests.integration.loop_here import GIB, Here, here
from tests.nvml_stub import Device as Card
from tests.nvml_stub import State, build
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path) as made:
        yield made


def test_the_driver_keeps_a_container_within_the_cap_by_the_group_that_its_engine_made(
    node: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = State(tmp_path / "nvml.txt")
    state.write([Card("GPU-a")])
    for name, value in state.environ(build(tmp_path)).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(capping, "_unable", {})
    monkeypatch.setattr(capping, "_limited", set())
    ident, proc, groups = "ab" * 32, tmp_path / "proc", tmp_path / "cgroup"
    monkeypatch.setattr(capping, "PROC", str(proc))
    monkeypatch.setattr(capping, "CGROUPS", str(groups))
    for pid, path in ((7, "/user.slice/x.scope"), (8, f"/system.slice/docker-{ident}.scope")):
        (proc / str(pid)).mkdir(parents=True)
        (proc / str(pid) / "cgroup").write_text(f"1:name=systemd:/x\n0::{path}\n")
    group = groups / "system.slice" / f"docker-{ident}.scope"
    group.mkdir(parents=True)
    job = node.run("sleep 60", gpu="one", declared_vram=4 * GIB)
    (lifecycle.run_dir_of(job) / "control" / "cid").write_text(ident)
    job.charges = {"GPU-a": {**job.charges[job.device], "cap": 12 * GIB}}
    job.device, job.image = "GPU-a", "team/train:2"
    found = Namespace(cidfile=str(lifecycle.run_dir_of(job) / "control" / "cid"))
    monkeypatch.setattr(capping, "container_of_run", lambda run_dir: (found, None))
    caps, reading = capping.Caps(), Reading("n", "b", 1.0, 1.0, {}, {})
    caps.refresh(job, reading, [Identity("b", 7, 1)])
    assert not capping.group_of_container(ident, [7])
    assert state.kept_limits() == []
    for _ in range(3):
        caps.refresh(job, reading, [Identity("b", 7, 1), Identity("b", 8, 1)])
    until(lambda: (lifecycle.run_dir_of(job) / "control" / capping.LIMIT).exists(), 20, "what the driver said")
    assert [(row[0], row[1]) for row in state.kept_limits()] == [("GPU-a", str(group))], "asked once"
    assert capping.stand(job)["sentence"] == "capped by the driver at 12.0 GiB"
    (groups / "unified").mkdir()
    assert "cgroup v2 alone" in capping.limit(job, capping.group_of_container(ident, [8]))
