"""What is past its keep goes; runs that go on and pinned ones stay."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from calibration.models import Point
from placement.models import DecisionRecord, Job
from placement.services import retention, tuning

pytestmark = pytest.mark.django_db
DAY = 86400


@pytest.fixture
def runs(tmp_path: Path, settings: object) -> Path:
    settings.RUNS = tmp_path  # type: ignore[attr-defined]
    return tmp_path


def job(**fields: object) -> Job:
    user, _ = User.objects.get_or_create(username="ada")
    base = {"name": "j", "user": user, "cwd": "/tmp", "state": "finished", "outcome": "completed"}
    return Job.objects.create(**{**base, **fields})


def directory(runs: Path, of: Job, age_days: float, size: int = 10) -> Path:
    made = runs / f"{of.pk}-1"
    (made / "control").mkdir(parents=True)
    (made / "stdout.log").write_bytes(b"x" * size)
    then = timezone.now().timestamp() - age_days * DAY
    os.utime(made, (then, then))
    return made


def test_old_run_directories_go_unless_pinned_or_running(runs: Path) -> None:
    old, new = directory(runs, job(), 40), directory(runs, job(), 1)
    pinned = directory(runs, job(pinned=True), 40)
    running = directory(runs, job(state="running", outcome=""), 40)
    (runs / "notes.txt").write_text("not a run")
    retention.prune()
    assert [path.exists() for path in (old, new, pinned, running)] == [False, True, True, True]
    assert (runs / "notes.txt").exists()


def test_beyond_the_size_the_oldest_go_first(runs: Path) -> None:
    tuning.turn(None, "keep_run_gib", "0.01")
    newest, older = directory(runs, job(), 1, size=8 << 20), directory(runs, job(), 2, size=8 << 20)
    retention.prune()
    assert (newest.exists(), older.exists()) == (True, False)


def test_points_and_decisions_past_their_keep_go(runs: Path) -> None:
    now = timezone.now().timestamp()
    for step, kept, gone in ((1, 1.9 * 3600, 2.1 * 3600), (10, 1.9 * DAY, 2.1 * DAY), (300, 29 * DAY, 31 * DAY)):
        for age in (kept, gone):
            Point.objects.create(node="n", pool="ram", step=step, at=int(now - age))
    old = job(ended_at=timezone.now() - timedelta(days=40))
    fresh = job(ended_at=timezone.now())
    for of in (old, fresh):
        DecisionRecord.objects.create(job=of, at=of.ended_at, verdict="wait", headline="h")
    retention.prune()
    assert sorted(Point.objects.values_list("step", flat=True)) == [1, 10, 300]
    assert list(DecisionRecord.objects.values_list("job", flat=True)) == [fresh.pk]
