"""A node of this process whose engine is none: real runners, containers that are processes of a daemon beside."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from placement.domain.containing.containers import ENGINES
from placement.models import Job
from placement.services import containing, lifecycle
from tests.engines import Docker
from tests.integration.loop_here import Here, here
from tests.wait import until

STUBBORN = "trap '' TERM; echo up; while :; do sleep 0.1; done"


@contextmanager
def node_with(engine: Docker, settings: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    """Make a node that finds this engine on its PATH; files that change how it behaves are gone afterwards."""
    monkeypatch.setenv("PATH", f"{engine.folder}{os.pathsep}{os.environ['PATH']}")
    which = shutil.which
    ours = str(engine.folder)  # a real podman of this machine is not there
    monkeypatch.setattr(
        shutil, "which", lambda name, **more: which(name, **({"path": ours} if name in ENGINES else more))
    )
    monkeypatch.setenv("DOCKER_FAKE", str(engine.home))
    settings.CONTAINERS, settings.CONTAINER_MOUNTS, settings.RAM_LIMIT = "auto", [], "watched"
    with here(settings, folder) as made:
        yield made
    for name in ("oom", "pull", "down", "kept", "stays"):
        (engine.home / name).unlink(missing_ok=True)


def log_of(job: Job) -> str:
    """Return what a job has printed."""
    return (lifecycle.run_dir_of(job) / "stdout.log").read_text()


def up(node: Here, engine: Docker, **fields: Any) -> tuple[Job, str, int]:
    """Return a job whose container runs and hears no TERM, the container's name and its process."""
    job = node.run(STUBBORN, image="team/train:2", **fields)
    until(lambda: "up" in log_of(job), 20, "its first words")
    name = containing.name_of(job)
    return job, name, int(engine.state(name)["pid"])
