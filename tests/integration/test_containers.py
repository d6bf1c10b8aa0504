"""Containers that are found running: whose label an engine tells, and what an ordinary job is told of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from calibration.domain.attribution import attribute
from calibration.domain.samples import Claim, Identity, ProcessSample, Reading
from placement.domain.containing.containers import UNKEPT
from placement.services import containers
from tests.integration.loop_here import Here, here

ID = "ab" * 32
PATH = f"/system.slice/docker-{ID}.scope"


class Engine:
    """A docker that knows one container; ``down``: it answers nothing at all."""

    def __init__(self, label: str = "7") -> None:
        self.label, self.down = label, False
        self.asked: list[str] = []

    def ask(self, command: Sequence[str]) -> str:
        self.asked.append(command[0])
        if self.down:
            raise OSError("Cannot connect to the Docker daemon")
        if command[-1] != ID or command[0] != "docker":
            raise OSError(f"Error: No such object: {command[-1]}")
        return f"{self.label}\n"


def labels(engine: Engine) -> containers.Labels:
    return containers.Labels(engine.ask, lambda name: f"/usr/bin/{name}")


def test_an_engine_is_asked_once_a_container() -> None:
    engine = Engine()
    told = labels(engine)
    assert [told.owner(PATH) for _ in range(3)] == ["job:7"] * 3
    assert engine.asked == ["docker"]
    assert told.owner("/user.slice") is None
    assert told.owner(f"/docker/{'cd' * 32}") is None
    assert engine.asked == ["docker", "docker", "podman"]


@pytest.mark.parametrize("label", ["", "<no value>", "7; rm -rf /", "9" * 30])
def test_a_label_that_names_no_job_is_none(label: str) -> None:
    assert labels(Engine(label)).owner(PATH) is None


def test_an_engine_that_does_not_answer_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.down = True
    told, now = labels(engine), [1000.0]
    monkeypatch.setattr(containers.time, "monotonic", lambda: now[0])
    assert [told.owner(PATH), told.owner(PATH)] == [None, None]
    assert engine.asked == ["docker", "podman"]
    engine.down = False
    now[0] += 61.0
    assert told.owner(PATH) == "job:7"


def test_a_machine_without_engines_asks_nobody() -> None:
    engine = Engine()
    assert containers.Labels(engine.ask, lambda name: None).owner(PATH) is None
    assert engine.asked == []


def test_the_processes_of_a_labelled_container_are_the_jobs() -> None:
    root = Identity("b", 300, 100)
    table = [ProcessSample(300, 1, 100), ProcessSample(800, 1, 200, cgroup=PATH)]
    reading = Reading("n", "b", 1.0, 1.0, {}, {p.pid: p for p in table})
    found = attribute(reading, [Claim("job:7", roots=(root,))], container_of=labels(Engine()).owner)
    assert found.rules[800] == ("job:7", "container")


def test_a_program_that_fails_or_hangs_is_an_error_with_its_words(tmp_path: Path) -> None:
    program = tmp_path / "docker"
    program.write_text(
        "#!/bin/sh\n[ $1 = ok ] && { echo 7; exit 0; }\n[ $1 = hang ] && exec sleep 60\necho no daemon >&2; exit 1\n"
    )
    program.chmod(0o755)
    assert containers.ask([str(program), "ok"]) == "7\n"
    with pytest.raises(OSError, match="no daemon"):
        containers.ask([str(program), "fail"])
    with pytest.raises(OSError, match="did not answer within"):
        containers.ask([str(program), "hang"], 0.2)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path) as made:
        yield made


@pytest.mark.django_db(transaction=True)
def test_an_ordinary_job_that_starts_a_container_is_flagged(node: Here) -> None:
    job = node.run("docker run team/x || sleep 60")
    node.tick()
    job.refresh_from_db()
    assert UNKEPT in job.flags
