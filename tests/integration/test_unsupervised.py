"""A job whose runner was killed: not lost while anything that was seen of it lives, and stoppable all the same."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from calibration import clock
from calibration.domain.knobs import Knobs as InstrumentKnobs
from placement.domain.knobs import Knobs
from placement.models import Job
from placement.runner.identity import Identity, identify
from placement.runner.jsonfile import write_record
from placement.services import lifecycle
from placement.services.ending import Round, run_dir_of
from placement.services.learning import Windows
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def escaped() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the job in a session of its own, as one that left its group before its runner died."""
    process = subprocess.Popen(["sleep", "300"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def gone() -> Identity:
    process = subprocess.Popen(["true"])
    found = identify(process.pid)
    process.wait()
    assert found is not None
    return found


@pytest.fixture
def job(escaped: subprocess.Popen[bytes], tmp_path: Path, settings: object) -> Job:
    settings.RUNS = tmp_path  # type: ignore[attr-defined]
    seen = identify(escaped.pid)
    assert seen is not None
    job = Job.objects.create(
        name="j",
        user=User.objects.create(username="ada"),
        cwd="/tmp",
        state="running",
        node="testnode",
        key_workload="w",
        started_at=timezone.now(),
        started_clock=clock.now(),
        members=[seen._asdict()],
    )
    (run_dir_of(job) / "control").mkdir(parents=True)
    fields = {"version": 1, "job_id": job.pk, "attempt": 1, "boot_id": seen.boot_id, "at": 0.0, "boottime": 0.0}
    dead = {name: {"pid": i.pid, "start_ticks": i.start_ticks} for name, i in (("runner", gone()), ("child", gone()))}
    write_record(str(run_dir_of(job) / "control" / "started.json"), {**fields, **dead})
    return job


def reap(job: Job) -> Job:
    now = Round(Windows(), 0.0, Knobs(), InstrumentKnobs.defaults(), {})
    fresh = Job.objects.select_related("user", "workload").get(pk=job.pk)
    lifecycle.reap([fresh], now)
    return Job.objects.get(pk=job.pk)


def test_it_is_kept_while_what_was_seen_of_it_lives(job: Job, escaped: subprocess.Popen[bytes]) -> None:
    seen = reap(job)
    assert (seen.state, seen.unsupervised) == ("running", True)
    escaped.kill()
    escaped.wait()
    ended = reap(job)
    assert (ended.state, ended.outcome) == ("finished", "lost")
    assert "runner was killed" in ended.sentence


def test_a_cancel_reaches_it_and_it_ends_cancelled(job: Job, escaped: subprocess.Popen[bytes]) -> None:
    Job.objects.filter(pk=job.pk).update(stop_reason="cancel", stop_by="ada", stop_requested_at=timezone.now())
    reap(job)
    until(lambda: escaped.poll() is not None, 20, "the escaped process to end")
    ended = reap(job)
    assert (ended.state, ended.outcome) == ("finished", "cancelled")


def test_its_time_limit_is_kept_by_the_tick(job: Job, escaped: subprocess.Popen[bytes]) -> None:
    Job.objects.filter(pk=job.pk).update(time_limit_s=5, started_clock=clock.now() - 6)
    reap(job)  # notes that it is over its limit
    reap(job)  # asks it to stop
    until(lambda: escaped.poll() is not None, 20, "the escaped process to end")
    assert reap(job).outcome == "timed_out"
