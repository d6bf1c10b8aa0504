"""The loop with real runners in this process: turns, adoption, deaths, and clocks that step."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from placement import loop
from placement.domain.errors import Refused
from placement.domain.jobs import State
from placement.models import Job
from placement.services import jobs
from tests.integration.databases import together
from tests.integration.loop_here import Here, alive, here, leased
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path) as made:
        yield made


def test_a_new_worker_adopts_what_runs(node: Here) -> None:
    job = node.run("sleep 600")
    granted = {pool: charge["granted"] for pool, charge in job.charges.items()}
    before = (job.runner, job.child, leased(job), job.started_at)

    node.new_worker()
    node.tick()
    node.tick()

    job.refresh_from_db()
    assert job.state == State.RUNNING
    assert (job.runner, job.child, leased(job), job.started_at) == before
    assert {pool: charge["granted"] for pool, charge in job.charges.items()} == granted
    assert node.sent == [("testnode", job.pk, 1)]


def test_a_job_that_ended_while_no_worker_was_there_has_its_true_code(node: Here, tmp_path: Path) -> None:
    door = tmp_path / "door"
    job = node.run(f"until [ -e {door} ]; do sleep 0.02; done; exit 3")

    door.touch()
    until(lambda: not alive(job.runner["pid"]), 20, "the end of its runner")
    node.new_worker()
    node.tick()

    job.refresh_from_db()
    assert (job.state, job.outcome, job.exit_code) == (State.FINISHED, "failed", 3)
    assert leased() == 0


def test_a_job_whose_runner_died_is_watched_and_ends_lost(node: Here) -> None:
    job = node.run("sleep 600")

    os.kill(job.runner["pid"], signal.SIGKILL)
    until(lambda: not alive(job.runner["pid"]), 20, "the runner's end")
    node.tick()
    job.refresh_from_db()
    assert (job.state, job.unsupervised, leased(job)) == (State.RUNNING, True, 1)
    os.kill(job.child["pid"], signal.SIGKILL)
    node.end(job)

    assert (job.outcome, leased()) == ("lost", 0)
    assert "its runner was killed" in job.sentence


@pytest.mark.parametrize("step", [7200, -3600])
def test_a_step_of_the_wall_clock_loses_nothing_and_delays_nothing(
    node: Here, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, real_time, real_now = node.run("sleep 600"), time.time, timezone.now
    held = node.submit("exit 0")
    jobs.hold(node.user, held.pk)
    before = leased()

    monkeypatch.setattr(time, "time", lambda: real_time() + step)
    monkeypatch.setattr(timezone, "now", lambda: real_now() + timedelta(seconds=step))
    for _ in range(3):
        node.tick()
    job.refresh_from_db()
    held.refresh_from_db()
    assert (job.state, leased(), held.code) == (State.RUNNING, before, "job_held")

    new = node.submit("exit 0")
    node.tick()
    new.refresh_from_db()
    assert new.state == State.ADMITTED
    assert node.end(new).outcome == "completed"
    jobs.release(node.user, held.pk)
    assert node.end(held).outcome == "completed"


def test_after_a_long_sleep_the_node_looks_first_and_then_decides(node: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    job, waits, real = node.run("sleep 600"), node.submit("exit 0"), time.clock_gettime
    boottime = time.CLOCK_BOOTTIME

    monkeypatch.setattr(time, "clock_gettime", lambda which: real(which) + (28800 if which == boottime else 0))
    node.tick()

    job.refresh_from_db()
    waits.refresh_from_db()
    assert (job.state, job.unsupervised) == (State.RUNNING, False)
    assert waits.state == State.ADMITTED


def test_two_ticks_at_once_take_one_turn(node: Here) -> None:
    turns = together(*[lambda: loop.tick(node.send) for _ in range(6)])
    assert sum(turns) == 1  # the others come within half a second and are dropped


def test_a_submission_that_is_refused_leaves_no_row(node: Here) -> None:
    with pytest.raises(Refused):
        node.submit("exit 0", cwd="/proc/nowhere")
    assert not Job.objects.exists()


def test_the_loops_thread_lock_is_free_again_after_a_tick_that_failed(
    node: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any) -> None:
        raise OSError("the probe fell over")

    with monkeypatch.context() as patch:
        patch.setattr("placement.services.node_tick.look", broken)
        with pytest.raises(OSError, match="fell over"):
            node.tick()
    done = threading.Event()
    together(lambda: (node.tick(), done.set()))
    assert done.is_set()
