"""A run in a container, with a runner as it is and an engine that is none: no container outlives what was asked."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest

from placement.domain.containing import containers
from placement.domain.containing.containers import Container
from placement.runner.identity import alive
from placement.runner.record import read_started
from placement.runner.status import Phase, look
from placement.runner.stop_request import request_stop
from tests import engines
from tests.acceptance.runner_run import Run, end_all
from tests.engines import gone
from tests.wait import until

NAME = "tidegate-1a-7-1"
STUBBORN = "trap '' TERM; echo up; while :; do sleep 0.1; done"


class Docker(engines.Docker):
    """With a run of one container."""

    def run(self, command: str = "", image: str = "team/train:2", **fields: object) -> Run:
        run = Run("true")
        path, cidfile = str(self.program), str(run.control / "cid")
        made = Container(
            engine=path, image=image, job=7, name=NAME, cidfile=cidfile, text=command, workdir=str(run.home),
            memory=6 << 30, environment={"TOKEN": "s3cret"},
        )  # fmt: skip
        spec = json.loads((run.control / "spec.json").read_text())
        del spec["command"]
        spec |= {"argv": containers.run_command(made), "env": {**self.env, "TOKEN": "s3cret"}, **fields}
        spec["container"] = {
            "name": NAME, "cidfile": cidfile, "limit": 6 << 30, "env": self.env,
            "stop": containers.stop_command(path, NAME), "kill": containers.kill_command(path, NAME),
            "state": containers.state_command(path, NAME), "remove": containers.remove_command(path, NAME),
        }  # fmt: skip
        (run.control / "spec.json").write_text(json.dumps(spec))
        return run.start()

    def pid(self) -> int:
        return int(self.state(NAME)["pid"])

    def there(self) -> bool:
        return NAME in self.names()


@pytest.fixture
def docker() -> Iterator[Docker]:
    made = Docker()
    until((made.home / "socket").exists, 20, "the daemon")
    yield made
    end_all()
    made.close()


def test_it_runs_says_what_it_says_and_is_removed(docker: Docker) -> None:
    run = docker.run('echo "$TIDEGATE_JOB_ID $TOKEN"; pwd; echo oops >&2; exit 3')
    ended = run.ended()
    assert run.log() == f"7 s3cret\n{run.home}\n".encode()
    assert run.log("stderr") == b"oops\n"
    assert (ended.code, ended.start_error, ended.stopped_by, ended.killed) == (3, None, None, False)
    assert ended.container is not None
    assert (ended.container["oom_killed"], ended.container["limit"]) == (False, 6 << 30)
    assert not docker.there()
    assert "s3cret" not in json.dumps(docker.asked())


def test_a_cancel_ends_the_container_and_only_then_the_run(docker: Docker) -> None:
    run = docker.run("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.1; done", grace_s=60.0)
    run.wait_for_log(b"up")
    pid = docker.pid()
    assert request_stop(run.dir, "cancel") == "signalled"
    ended = run.ended()
    assert gone(pid)
    assert not docker.there()
    assert (ended.stopped_by, ended.code, ended.leftovers) == ("cancel", 5, ())
    assert b"bye" in run.log()
    assert ["stop", "-t", "60", NAME] in docker.asked()


def test_one_that_does_not_hear_is_killed_after_its_grace_and_at_once_by_the_watchdog(docker: Docker) -> None:
    run = docker.run(STUBBORN)
    run.wait_for_log(b"up")
    pid = docker.pid()
    request_stop(run.dir, "watchdog")
    assert run.ended().stopped_by == "watchdog"
    assert gone(pid)
    assert not docker.there()
    assert ["kill", NAME] in docker.asked()
    assert not any(words[0] == "stop" for words in docker.asked())


def test_a_client_that_is_killed_takes_its_container_along(docker: Docker) -> None:
    run = docker.run(STUBBORN)
    run.wait_for_log(b"up")
    pid = docker.pid()
    os.kill(run.started.child.pid, signal.SIGKILL)
    ended = run.ended()
    assert gone(pid)
    assert not docker.there()
    assert (ended.signal, ended.swept, ended.stopped_by) == (9, True, None)


def test_the_run_is_not_over_while_the_engine_cannot_say_that_its_container_is(docker: Docker) -> None:
    run = docker.run(STUBBORN)
    run.wait_for_log(b"up")
    pid = docker.pid()
    (docker.home / "down").touch()
    request_stop(run.dir, "cancel", 0.0)
    until(lambda: any(line[0] in ("stop", "kill") for line in docker.asked()), 20, "the engine to be asked to end it")
    os.kill(run.started.child.pid, signal.SIGKILL)  # the client hangs as its engine does
    closing = run.control / "closing.json"
    until(closing.exists, 20, "the note that it cannot be ended")
    until(lambda: "Cannot connect" in closing.read_text(), 20, "the engine's own words")
    assert look(run.dir).phase is not Phase.EXITED
    assert not gone(pid)
    (docker.home / "down").unlink()
    assert run.ended().stopped_by == "cancel"
    assert gone(pid)
    assert not docker.there()


def test_an_engine_that_was_removed_keeps_no_run_for_ever(docker: Docker) -> None:
    run = docker.run(STUBBORN)
    run.wait_for_log(b"up")
    docker.program.unlink()
    os.kill(run.started.child.pid, signal.SIGKILL)
    assert run.ended().signal == 9


def test_without_a_runner_a_cancel_ends_it_all_the_same(docker: Docker) -> None:
    run = docker.run(STUBBORN)
    run.wait_for_log(b"up")
    pid, started = docker.pid(), read_started(run.dir)
    assert started is not None
    os.kill(started.runner.pid, signal.SIGKILL)
    until(lambda: not alive(started.runner), 10, "the runner's end")
    assert look(run.dir).phase is Phase.UNSUPERVISED
    assert request_stop(run.dir, "cancel") == "signalled"
    until(lambda: gone(pid), 20, "the container's end")
    assert ["stop", "-t", "1", NAME] in docker.asked()


def test_its_memory_limit_is_told_before_it_is_removed(docker: Docker) -> None:
    (docker.home / "oom").touch()
    ended = docker.run("kill -9 $$").ended()
    assert ended.container is not None
    assert ended.container["oom_killed"] is True
    assert ended.code == 137
    assert not docker.there()


@pytest.mark.parametrize(
    "image, words",
    [
        ("missing/x", "pull access denied"),
        ("broken/x", "could not select device driver"),
        ("nothing/x", "its image has no such program, or none that can be run there: [FATAL tini (7)] exec -c failed"),
    ],
)
def test_what_never_ran_could_not_be_started_in_the_engines_own_words(docker: Docker, image: str, words: str) -> None:
    ended = docker.run("true", image).ended()
    assert ended.code is None
    assert ended.start_error is not None
    assert ended.start_error.startswith("could not start: ")
    assert words in ended.start_error
    assert not docker.there()


def test_a_command_may_end_with_such_a_code_itself(docker: Docker) -> None:
    ended = docker.run("no-such-command-here").ended()
    assert (ended.code, ended.start_error) == (127, None)


def test_a_cancel_while_its_image_is_fetched_starts_nothing(docker: Docker) -> None:
    (docker.home / "pull").touch()
    run = docker.run("echo up")
    until(lambda: (docker.home / "asked").exists(), 10, "the client's start")
    request_stop(run.dir, "cancel")
    ended = run.ended()
    assert ended.stopped_by == "cancel"
    assert ended.start_error is None
    assert not docker.there()
    assert not (run.control / "cid").exists()


def test_a_time_limit_begins_with_the_container_and_not_with_the_fetch_of_its_image(docker: Docker) -> None:
    (docker.home / "pull").touch()
    began = time.monotonic()
    run = docker.run("echo up; while :; do sleep 0.1; done", time_limit_s=1.5)
    until(lambda: time.monotonic() - began > 2, 20, "more than the limit")
    assert look(run.dir).phase is Phase.RUNNING
    assert not (run.control / "leader.json").exists()
    (docker.home / "pull").unlink()
    ended = run.ended()
    took = time.monotonic() - began
    assert (ended.stopped_by, run.log()) == ("time_limit", b"up\n")
    assert 1.5 <= (ended.duration_s or 0.0) < took - 1.5
