"""Containers by the docker and the podman of this machine, where it has them: what the played one stands for."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from placement.domain.containing import containers
from placement.domain.containing.containers import Container
from placement.runner.identity import alive
from placement.runner.record import read_started
from placement.runner.status import Phase, look
from placement.runner.stop_request import request_stop
from placement.services import engines as service
from tests import real_engines
from tests.acceptance.runner_run import Run, end_all
from tests.engines import gone
from tests.real_engines import Real
from tests.wait import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
NAME = "tidegate-1a-7-1"
STUBBORN = "trap '' TERM; echo up; while :; do sleep 0.1; done"
HOG = """exec awk 'BEGIN { s = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; while (1) s = s s }'"""
MIB = 1 << 20


@pytest.fixture(scope="module", params=real_engines.here())
def engine(request: pytest.FixtureRequest) -> Iterator[Real]:
    if lacking := real_engines.lacking(request.param):
        pytest.skip(f"{request.param} needs {', '.join(lacking)}")
    with real_engines.real(request.param) as made:
        yield made


@pytest.fixture(autouse=True)
def ended(engine: Real) -> Iterator[None]:
    yield
    end_all()
    engine.empty()


def start(engine: Real, command: str = "", image: str = "", **more: object) -> Run:
    run = Run("true")
    path, cidfile = str(engine.program), str(run.control / "cid")
    made = Container(
        engine=path, image=image or engine.image, job=7, name=NAME, cidfile=cidfile, text=command,
        command=more.pop("words", ()), workdir=str(run.home), mounts=[str(run.home)], memory=64 * MIB,  # type: ignore[arg-type]
        environment={"TOKEN": "s3cret"}, user=f"{os.geteuid()}:{os.getegid()}",
    )  # fmt: skip
    spec = json.loads((run.control / "spec.json").read_text())
    del spec["command"]
    spec |= {"argv": containers.run_command(made), "env": {**engine.env, "TOKEN": "s3cret"}, "cwd": str(run.control)}
    spec["container"] = {
        "name": NAME, "cidfile": cidfile, "limit": 64 * MIB, "env": engine.env,
        "stop": containers.stop_command(path, NAME), "kill": containers.kill_command(path, NAME),
        "state": containers.state_command(path, NAME), "remove": containers.remove_command(path, NAME),
    }  # fmt: skip
    (run.control / "spec.json").write_text(json.dumps(spec))
    return run.start()


def up(engine: Real) -> tuple[Run, int]:
    run = start(engine, STUBBORN)
    run.wait_for_log(b"up")
    return run, int(engine.state(NAME)["Pid"])


def test_it_runs_says_what_it_says_and_is_removed(engine: Real) -> None:
    run = start(engine, 'echo "$TIDEGATE_JOB_ID $TOKEN $NVIDIA_VISIBLE_DEVICES"; pwd; echo oops >&2; exit 3')
    ended = run.ended()
    assert run.log() == f"7 s3cret void\n{run.home}\n".encode()
    assert run.log("stderr") == b"oops\n"
    assert (ended.code, ended.start_error, ended.stopped_by, ended.leftovers) == (3, None, None, ())
    assert engine.names() == []
    assert "s3cret" not in "".join(engine.asked())


def test_one_that_does_not_hear_is_killed_after_its_grace(engine: Real) -> None:
    run, pid = up(engine)
    assert containers.id_of(f"/x/{(run.control / 'cid').read_text()}")
    request_stop(run.dir, "cancel")
    ended = run.ended()
    assert gone(pid)
    assert (ended.stopped_by, ended.code, engine.names()) == ("cancel", 137, [])
    assert f"stop -t 1 {NAME}" in engine.asked()


def test_the_watchdog_kills_it_and_a_client_that_is_killed_takes_it_along(engine: Real) -> None:
    run, pid = up(engine)
    request_stop(run.dir, "watchdog")
    assert run.ended().stopped_by == "watchdog"
    assert gone(pid)
    run, pid = up(engine)
    os.kill(run.started.child.pid, signal.SIGKILL)
    assert run.ended().signal == 9
    assert gone(pid)
    assert engine.names() == []


def test_without_runner_and_client_it_lives_until_it_is_asked_to_end_and_while_it_is_stopped(engine: Real) -> None:
    run, pid = up(engine)
    started = read_started(run.dir)
    assert started is not None
    for one in (started.runner, started.child):
        os.kill(one.pid, signal.SIGKILL)
    until(lambda: not alive(started.runner), 10, "the runner's end")
    assert look(run.dir).phase is not Phase.EXITED
    container = service.container_of_run(run.dir)
    assert container is not None
    asked = service.engine.look(container[0])
    assert (asked.there, asked.runs, asked.began, asked.pid) == (True, True, True, pid)
    assert request_stop(run.dir, "cancel", 3.0) == "signalled"
    seen = 0
    while not gone(pid):  # podman says "stopping" for these seconds, and that it does not run
        asked = service.engine.look(container[0])
        seen += asked.runs
        assert asked.runs or gone(pid)
    assert seen > 1
    until(lambda: not service.engine.look(container[0]).runs, 20, "the engine's word of its end")
    assert service.engine.look(container[0]).code == 137


def test_its_memory_limit_is_told_and_nothing_is_left_in_its_working_directory(engine: Real) -> None:
    run = start(engine, HOG)
    ended = run.ended()
    assert ended.container is not None
    assert (ended.code, ended.container["oom_killed"], ended.container["limit"]) == (137, True, 64 * MIB)
    assert sorted(os.listdir(run.home)) == ["run"]
    assert engine.names() == []


def test_a_limit_rises_and_goes_while_it_runs(engine: Real) -> None:
    run, _ = up(engine)
    for limit in (96 * MIB, None):
        line = containers.limit_command(str(engine.program), NAME, limit)
        code, said = service.engine.ask(line, engine.env)
        assert code == 0, said
    request_stop(run.dir, "watchdog")
    run.ended()


def test_what_never_ran_could_not_be_started(engine: Real) -> None:
    assert "could not start: " in (start(engine, "true", image="localhost:1/missing/x:1").ended().start_error or "")
    for words in (["nope"], ["/etc"]):
        ended = start(engine, words=words).ended()
        assert (ended.code, engine.names()) == (None, [])
        assert "its image has no such program, or none that can be run there" in (ended.start_error or "")
    ended = start(engine, "no-such-command-here").ended()
    assert (ended.code, ended.start_error) == (127, None)
    ended = start(engine, "exit 125").ended()
    assert (ended.code, ended.start_error) == (125, None)


@pytest.mark.parametrize("engine", ["podman"], indirect=True)  # docker's daemon sees the end itself
def test_a_container_whose_helper_was_killed_is_over_when_nothing_of_it_is_left(engine: Real) -> None:
    run, pid = up(engine)
    for number in (int(engine.state(NAME)["ConmonPid"]), pid):
        os.kill(number, signal.SIGKILL)
    ended = run.ended(60)
    assert (ended.code, engine.names()) == (None, [])
