"""What engines say, as docker 20 and 28 and podman 4 said it, and what is made of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from placement.runner.engine import OOM, Container, State, look, no_program, read_state, unknown

NO_REGISTRY = 'Error: short-name "x:1" did not resolve to an alias and no unqualified-search registries are defined'


@pytest.mark.parametrize(
    "said, state",
    [
        ("false 3 false 0 2026-11-30T06:56:00.101015695Z", State(True, False, True, False, 3)),
        ("true 137 false 0 2026-11-30 06:57:01.66 +0000 UTC", State(True, False, True, True, 137)),
        ("false 0 true 8799 2026-11-30T07:04:57.62Z", State(True, True, True, False, 0, pid=8799)),
        pytest.param(
            "false 0 false 17023 2026-11-30 07:04:46.2 +0000 UTC",
            State(True, True, True, False, 0, pid=17023),
            id="stopping",
        ),
        ("false 128 false 0 0001-01-01T00:00:00Z", State(True, False, False, False, 128)),
        ("false 0 false 0 0001-01-01 00:00:00 +0000 UTC", State(True, False, False, False, 0)),
        pytest.param("false 0 true 2026-11-30T07:04:57.62Z", State(True, True, True, False, 0), id="asked in 4 words"),
        pytest.param("false 5 false 2026-11-30 07:04:57 +0000 UTC", State(True, False, True, False, 5), id="and 4"),
        pytest.param(
            "WARNING: Error loading config file: permission denied\ntrue 137 false 0 2026-11-30T07:04:57.62Z",
            State(True, False, True, True, 137),
            id="a warning first",
        ),
        ("WARNING: Error loading config file: permission denied", None),
        ("", None),
    ],
)
def test_a_state_is_read_from_its_line_alone(said: str, state: State | None) -> None:
    assert read_state(said) == state


@pytest.mark.parametrize(
    "said, yes",
    [
        ("Error: No such object: x", True),
        ('[]\nError: inspecting object: no such object: "x"', True),
        ("Error response from daemon: No such container: x", True),
        ('Error: no container with name or ID "x" found: no such container', True),
        ('error during connect: Get "http://h:2375/v1.50/containers/x/json": lookup h: no such host', False),
        ("failed to connect to the docker API at unix:///r/docker.sock: no such file or directory", False),
        ('time="2026-11-30T06:59:14Z" level=error msg="stat /storage.conf: no such file or directory"', False),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?", False),
    ],
)
def test_only_an_engine_that_answers_can_say_that_there_is_no_such_container(said: str, yes: bool) -> None:
    assert unknown(said) is yes


@pytest.mark.parametrize(
    "log, yes",
    [
        ("[FATAL tini (7)] exec nope failed: No such file or directory\n", True),
        ("Unable to find image\n[FATAL tini (6)] exec /etc/passwd failed: Permission denied\n", True),
        ("ERROR (catatonit:6): failed to exec pid1: No such file or directory\n", True),
        ("[FATAL tini (7)] exec nope failed: No such file or directory\nand then more\n", False),
        ("/bin/sh: nosuch: not found\n", False),
        (NO_REGISTRY, False),
        ("", False),
    ],
)
def test_the_engines_first_process_says_that_there_is_no_such_program(log: str, yes: bool) -> None:
    assert bool(no_program(log)) is yes


def test_what_podmans_helper_leaves_tells_of_the_limit(tmp_path: Path) -> None:
    told = ("/bin/echo", "false", "137", "false", "0", "2026-11-30", "06:57:01")
    made = Container("n", str(tmp_path / "cid"), ("/bin/true",), ("/bin/true",), told, ("/bin/true",), 1 << 20, {})
    assert not look(made).oom_killed
    (tmp_path / OOM).touch()
    assert look(made) == State(True, False, True, True, 137)


@pytest.mark.parametrize(
    "engine, env, pid, runs",
    [
        ("podman", {}, "999999999", False),
        pytest.param("podman", {}, str(os.getpid()), True, id="its process lives"),
        pytest.param("podman", {"CONTAINER_HOST": "ssh://far"}, "999999999", True, id="of another machine"),
        pytest.param("docker", {}, "999999999", True, id="its daemon sees the end itself"),
    ],
)
def test_what_podman_takes_for_running_is_over_once_nothing_of_it_is_left(
    tmp_path: Path, engine: str, env: dict[str, str], pid: str, runs: bool
) -> None:
    program = tmp_path / engine
    program.write_text(f"#!/bin/sh\necho false 0 true {pid} 2026-11-30 06:57:01\n")
    program.chmod(0o755)
    (tmp_path / "cid").write_text("5" * 64)
    made = Container("n", str(tmp_path / "cid"), ("x",), ("x",), (str(program),), ("x",), None, env)
    assert look(made) == State(True, runs, True, False, 0 if runs else None, pid=int(pid))
