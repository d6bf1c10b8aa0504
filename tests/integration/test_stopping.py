from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from placement.models import Job, Member
from placement.runner.jsonfile import write_record
from placement.runner.launch import launch
from placement.runner.members import members
from placement.runner.record import read_exit, read_started
from placement.services import lifecycle, stopping
from tests.wait import until

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(settings: Any, tmp_path: Path) -> User:
    settings.RUNS, settings.NODE = tmp_path / "runs", "atlas"
    settings.RUNS.mkdir()
    admin = User.objects.create_user("ann")
    Member.objects.create(user=admin, role="admin")
    return admin


def job(owner: User, state: str, node: str = "atlas") -> Job:
    return Job.objects.create(
        name="sleep", user=owner, cwd="/tmp", key_workload="sleep", state=state, node="" if state == "queued" else node
    )


def running(owner: User, command: str, grace_s: float = 1.0) -> Job:
    made = job(owner, "running")
    run_dir = lifecycle.run_dir_of(made)
    (run_dir / "control").mkdir(parents=True, mode=0o700)
    spec = {
        "job_id": made.pk, "attempt": 1, "node": "atlas", "command": command, "setup": "", "cwd": "/tmp",
        "env": {"PATH": os.environ["PATH"]}, "account": None, "umask": 0o022, "log_limit_bytes": 1 << 20,
        "time_limit_s": None, "grace_s": grace_s, "sweep": "after_grace", "sweep_grace_s": 0.5, "oom_score_adj": 500,
    }  # fmt: skip
    write_record(str(run_dir / "control" / "spec.json"), spec)
    assert launch(run_dir).ok
    return made


def test_without_the_service_running_jobs_really_end_and_waiting_ones_never_start(ann: User) -> None:
    sleeper, waiting, said = running(ann, "sleep 300 & sleep 300"), job(ann, "queued"), list[str]()
    started = read_started(lifecycle.run_dir_of(sleeper))
    assert started is not None

    left = stopping.stop(ann, stopping.unfinished(), wait_s=15, say=said.append)

    assert left == 0
    record = read_exit(lifecycle.run_dir_of(sleeper))
    assert record is not None
    assert record.stopped_by == "cancel"
    until(lambda: not members(started), 20, "the end of every process of the job")
    waiting.refresh_from_db()
    assert waiting.outcome == "cancelled"
    assert sorted(said) == sorted(
        [f"#{sleeper.pk} is being stopped.", f"#{waiting.pk} is cancelled; it had not started."]
    )


def test_one_that_will_not_go_at_once_is_counted_and_goes_later(ann: User) -> None:
    stubborn = running(ann, "trap '' TERM; echo ready; while ((SECONDS < 90)); do sleep 0.1; done", grace_s=1.5)
    log = lifecycle.run_dir_of(stubborn) / "stdout.log"
    until(lambda: "ready" in log.read_text(), 20, "the command to be deaf to TERM")

    left = stopping.stop(ann, stopping.unfinished(), wait_s=0.2, say=lambda sentence: None)

    assert left == 1
    assert until(lambda: read_exit(lifecycle.run_dir_of(stubborn)), 20, "its end").killed


def test_an_admitted_job_that_has_not_begun_is_kept_from_beginning(ann: User) -> None:
    admitted = job(ann, "admitted")

    assert stopping.stop(ann, stopping.unfinished(), wait_s=1, say=lambda sentence: None) == 0

    admitted.refresh_from_db()
    assert admitted.stop_requested_at is not None


def test_jobs_of_other_machines_are_asked_through_the_database_alone(ann: User) -> None:
    far = job(ann, "running", node="borea")

    assert stopping.stop(ann, stopping.unfinished(), wait_s=1, say=lambda sentence: None) == 0

    far.refresh_from_db()
    assert far.stop_reason == "cancel"


def test_waiting_jobs_are_cancelled_before_running_ones(ann: User) -> None:
    second, first = job(ann, "running", node="borea"), job(ann, "queued")

    assert list(stopping.unfinished()) == [first, second]
