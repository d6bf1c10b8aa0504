"""Jobs in containers through the whole loop: real runners, and an engine that is none."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calibration import clock
from calibration.models import Sediment
from placement import snapshots
from placement.domain.containing.containers import UNKEPT
from placement.domain.jobs import Outcome, State
from placement.models import Job, Node
from placement.runner.identity import Identity, alive
from placement.services import containing, engines, jobs, lifecycle
from tests.engines import Docker, docker, gone
from tests.integration.engine_here import log_of, node_with, up
from tests.integration.loop_here import GIB, Here, control, leased
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def engine() -> Iterator[Docker]:
    with docker() as made:
        yield made


@pytest.fixture
def node(settings: Any, tmp_path: Path, engine: Docker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    with node_with(engine, settings, tmp_path, monkeypatch) as made:
        yield made


def test_a_job_runs_in_its_image_and_its_first_line_says_so(node: Here, engine: Docker) -> None:
    job = node.end(node.submit('echo "in $TIDEGATE_JOB_ID $GIVEN"', image="team/train:2", environment={"GIVEN": "x y"}))
    assert (job.outcome, log_of(job)) == (Outcome.COMPLETED, f"in {job.pk} x y\n")
    line = next(words for words in reversed(engine.asked()) if words[0] == "run")
    cap = job.charges["ram"]["cap"]
    assert line[line.index("--memory") + 1] == f"{cap}b"
    assert line[line.index("--label") + 1] == f"tidegate.job={job.pk}"
    assert "/tmp:/tmp" in line
    assert f"{os.geteuid()}:{os.getegid()}" in line
    assert "x y" not in " ".join(line)
    assert containing.name_of(job) not in engine.names()
    assert job.evidence["container"]["oom_killed"] is False
    node_row = Node.objects.get()
    assert node_row.containers == {"works": ["docker"], "sentence": "docker 27.1.0 answers; no podman was found"}
    assert snapshots.node_now("testnode").engines == ("docker",)  # type: ignore[union-attr]


def test_a_job_whose_container_was_killed_at_its_limit_ran_past_its_cap(node: Here, engine: Docker) -> None:
    (engine.home / "oom").touch()
    job = node.end(node.submit("kill -9 $$", image="team/train:2"))
    assert job.outcome == Outcome.CAP_EXCEEDED
    assert "its container was killed at its own limit of " in job.sentence
    assert job.evidence["memory"] == "ram"
    again_ = node.submit("kill -9 $$", image="team/train:2")
    assert (again_.estimate["pools"]["ram"].get("at_least") or again_.estimate["pools"]["ram"]["need"]) > 0
    jobs.cancel(node.user, again_.pk)


def test_what_cannot_be_fetched_could_not_be_started_and_teaches_nothing(node: Here) -> None:
    job = node.end(node.submit("true", image="missing/x"))
    assert job.outcome == Outcome.START_FAILED
    assert "pull access denied for missing/x" in job.sentence
    assert not Sediment.objects.filter(owner=f"job:{job.pk}").exists()


def test_while_its_image_is_fetched_nothing_of_it_is_measured(node: Here, engine: Docker) -> None:
    (engine.home / "pull").touch()
    job = node.run("echo up; sleep 60", image="team/train:2")
    for _ in range(3):
        node.tick()
    job.refresh_from_db()
    (flag,) = job.flags
    assert flag.startswith("its image is being fetched since ")
    assert flag.endswith(": its time has not begun, and nothing of it is measured yet")
    before = job.started_at
    assert job.used == {}
    assert not job.charges["ram"].get("settled")
    (engine.home / "pull").unlink()
    until(lambda: engines.begun_at(job) is not None and "up" in log_of(job), 20, "its container, at work")
    node.tick()
    job.refresh_from_db()
    assert job.flags == []
    begun = engines.begun_at(job)
    assert begun is not None
    assert abs(job.started_at.timestamp() - begun) < 0.01
    assert job.started_at > before
    assert job.started_clock is not None
    assert clock.now() - job.started_clock < time.time() - before.timestamp()
    assert job.used["ram"] is not None
    assert job.charges["ram"]["force"]["sentence"].endswith("by its container's own limit")
    jobs.cancel(node.user, job.pk)
    node.end(job)


def test_a_cancelled_job_keeps_its_lease_until_its_container_is_gone(node: Here, engine: Docker) -> None:
    job, name, pid = up(node, engine)
    node.tick()
    job.refresh_from_db()
    assert pid in {member["pid"] for member in job.members}
    jobs.cancel(node.user, job.pk)
    assert leased(job)

    def let_go() -> bool:
        node.tick()
        assert leased(job) or gone(pid)
        return not leased(job)

    until(let_go, 20, "the end of its lease", 0.05)
    job = node.end(job)
    assert job.outcome == Outcome.CANCELLED
    assert name not in engine.names()


def test_a_job_whose_runner_was_killed_ends_with_its_container(node: Here, engine: Docker) -> None:
    job, name, pid = up(node, engine)
    os.kill(job.runner["pid"], signal.SIGKILL)
    os.kill(job.child["pid"], signal.SIGKILL)
    until(lambda: not alive(Identity(**job.runner)), 20, "the runner's end")
    node.tick()
    job.refresh_from_db()
    assert (job.state, job.unsupervised) == (State.RUNNING, True)
    jobs.cancel(node.user, job.pk)
    job = node.end(job)
    assert gone(pid)
    assert name not in engine.names()
    assert job.outcome == Outcome.CANCELLED
    assert ["stop", "-t", "1", name] in engine.asked()


def test_a_container_that_ended_unseen_tells_its_code(node: Here, engine: Docker, tmp_path: Path) -> None:
    wait = f"echo up; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; exit 4"
    job = node.run(wait, image="team/train:2")
    until(lambda: "up" in log_of(job), 20, "its first words")
    os.kill(job.runner["pid"], signal.SIGKILL)
    os.kill(job.child["pid"], signal.SIGKILL)
    until(lambda: not alive(Identity(**job.runner)), 20, "the runner's end")
    (tmp_path / "go").touch()
    job = node.end(job)
    assert (job.outcome, job.exit_code) == (Outcome.FAILED, 4)
    assert containing.name_of(job) not in engine.names()


def test_a_leftover_of_an_ended_run_is_removed_or_told_and_a_running_one_is_left(node: Here, engine: Docker) -> None:
    job, name, pid = up(node, engine)
    ours = containing.name_of(Job(pk=0, attempt=0)).removesuffix("0-0")
    for other in (f"{ours}99-1", "tidegate-other-1-1"):
        ended = {**engine.state(name), "done": True, "pid": 0}
        (engine.home / f"{other}.json").write_text(json.dumps(ended))
    (engine.home / "kept").touch()
    (note,) = engines.leftovers("docker", set())
    assert f"{ours}99-1" in note
    assert "container is busy" in note
    (engine.home / "kept").unlink()
    assert engines.leftovers("docker", set()) == []
    assert set(engine.names()) == {name, "tidegate-other-1-1"}
    assert not gone(pid)
    (engine.home / "tidegate-other-1-1.json").unlink()
    jobs.cancel(node.user, job.pk)
    node.end(job)


def test_the_limit_of_a_container_rises_with_its_cap_and_goes_with_the_policy(node: Here, engine: Docker) -> None:
    job, name, _ = up(node, engine)
    known, run_dir = engines.Engines(), lifecycle.run_dir_of(job)
    knobs, _ = snapshots.knobs_now()
    cap = job.charges["ram"]["cap"]
    assert job.charges["ram"]["force"]["bytes"] == cap
    assert not known.refresh(job, knobs, "")
    higher = job.charges["ram"]["cap"] = cap + GIB
    assert known.refresh(job, knobs, "")
    assert ["update", "--memory", f"{higher}b", "--memory-swap", f"{higher}b", name] in engine.asked()
    assert engines.limit_of(run_dir, cap) == higher
    assert engines.Engines().refresh(job, knobs, "") is False

    (engine.home / "stays").touch()  # it answers, and changes nothing
    assert known.refresh(job, knobs, "warn")
    assert "the policy only warns, but its engine does not change that" in job.charges["ram"]["force"]["sentence"]
    asked = len(engine.asked())
    assert not known.refresh(job, knobs, "warn")
    assert len(engine.asked()) == asked, "it is not asked again each second"
    (engine.home / "stays").unlink()
    known = engines.Engines()
    assert known.refresh(job, knobs, "warn")
    assert job.charges["ram"]["force"]["sentence"] == "watched, not kept: the policy only warns"
    assert ["update", "--memory", f"{1 << 50}b", "--memory-swap", f"{1 << 50}b", name] in engine.asked()
    assert engines.limit_of(run_dir, cap) is None
    job.used["ram"] = higher
    assert engines.Engines().refresh(job, knobs, "cap"), "it holds too much to be limited"
    assert engines.limit_of(run_dir, cap) is None
    job.used["ram"] = cap // 2
    assert engines.Engines().refresh(job, knobs, "cap")
    assert engines.limit_of(run_dir, cap) == higher
    jobs.cancel(node.user, job.pk)
    node.end(job)


def test_an_engine_that_does_not_answer_is_told_with_since_when(node: Here, engine: Docker) -> None:
    job, _, pid = up(node, engine)
    (engine.home / "down").touch()
    jobs.cancel(node.user, job.pk)
    node.tick()

    def told() -> list[str]:
        node.tick()
        job.refresh_from_db()
        return [flag for flag in job.flags if "does not end its container since" in flag]

    until(told, 20, "the sentence")
    (flag,) = told()
    assert re.search(r"since \d\d:\d\d:\d\d \(tried again every few seconds", flag)
    os.kill(job.child["pid"], signal.SIGKILL)
    until(lambda: "Cannot connect" in told()[0], 20, "the engine's own words")
    os.kill(job.runner["pid"], signal.SIGKILL)  # the loop itself asks now
    (control(job) / "closing.json").unlink()
    until(lambda: not alive(Identity(**job.runner)), 20, "the runner's end")
    until(told, 20, "the sentence again")
    assert leased(job)
    (engine.home / "down").unlink()
    assert node.end(job).outcome == Outcome.CANCELLED
    assert gone(pid)


def test_an_ordinary_job_that_runs_a_client_teaches_nothing(node: Here, tmp_path: Path) -> None:
    wait = f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    job = node.run(f"docker run x >/dev/null 2>&1; {wait}", declared_ram=GIB // 8)
    node.tick()
    job.refresh_from_db()
    assert UNKEPT in job.flags
    (tmp_path / "go").touch()
    job = node.end(job)
    assert job.outcome == Outcome.COMPLETED
    assert not Sediment.objects.filter(owner=f"job:{job.pk}").exists()
    assert not (control(job) / "cid").exists()
