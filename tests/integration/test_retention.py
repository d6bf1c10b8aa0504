"""What is past its keep goes; runs that go on and pinned ones stay."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.utils import timezone

from calibration import pruning, rows
from calibration.domain.sediment import Key
from calibration.models import Point, Sediment
from placement.models import AuditEntry, DecisionRecord, ForecastRecord, Job, Lease
from placement.services import retention, run_directories, tuning

pytestmark = pytest.mark.django_db
DAY = 86400


@pytest.fixture
def runs(tmp_path: Path, settings: object) -> Path:
    run_directories._sizes.clear()  # names come again in each test, and never in a service
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


def test_readings_go_when_the_knobs_say(runs: Path) -> None:
    now = timezone.now().timestamp()
    for step, kept, gone in ((1, 1.9 * 3600, 2.1 * 3600), (10, 1.9 * DAY, 2.1 * DAY), (300, 29 * DAY, 31 * DAY)):
        for age in (kept, gone):
            Point.objects.create(node="n", pool="ram", step=step, at=int(now - age))
    retention.prune()
    assert sorted(Point.objects.values_list("step", flat=True)) == [1, 10, 300]
    tuning.turn(None, "keep_minutes_days", "20")
    retention.prune()
    assert sorted(Point.objects.values_list("step", flat=True)) == [1, 10]


def with_history(of: Job) -> Job:
    at = of.ended_at or timezone.now()
    DecisionRecord.objects.create(job=of, at=at, verdict="wait", headline="h")
    Lease.objects.create(job=of, node="n", pool="ram", kind="ram", bytes=1, released_at=of.ended_at)
    return of


def test_decisions_and_leases_of_jobs_long_ended_go_and_the_row_says_so(runs: Path) -> None:
    def days(count: int) -> datetime:
        return timezone.now() - timedelta(days=count)

    decided = {"decision": {"verdict": "start"}, "submitted_at": days(400)}
    old = with_history(job(ended_at=days(91), **decided))
    fresh = with_history(job(ended_at=days(89), **decided))
    waits = with_history(job(state="queued", outcome="", **decided))
    runs_on = with_history(job(state="running", outcome="", **decided))
    retention.prune()
    left = {fresh.pk, waits.pk, runs_on.pk}
    assert set(DecisionRecord.objects.values_list("job", flat=True)) == left
    assert set(Lease.objects.values_list("job", flat=True)) == left
    assert set(Job.objects.filter(pruned_at=None, decision__verdict="start").values_list("pk", flat=True)) == left
    old.refresh_from_db()
    assert (old.decision, old.outcome) == ({}, "completed")
    assert retention.prune() == 0  # nothing is left to do, and nothing is done twice


def test_a_large_backlog_goes_in_steps_and_over_several_prunes(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "JOBS_AT_ONCE", 3)
    for _ in range(10):
        with_history(job(ended_at=timezone.now() - timedelta(days=100)))
    assert retention.prune(seconds=0) == 3  # one step, whatever the time
    assert retention.prune(seconds=30) == 7
    assert DecisionRecord.objects.count() == Lease.objects.count() == 0


def test_forecasts_go_when_they_are_old(runs: Path) -> None:
    for age in (29, 31):
        made = timezone.now() - timedelta(days=age)
        ForecastRecord.objects.create(job=job(ended_at=timezone.now()), number=0, at=made, sure="learned")
    assert retention.prune() == 1


def test_audit_entries_and_sessions_go_when_they_are_old(runs: Path) -> None:
    for age in (729, 731):
        entry = AuditEntry.objects.create(who="ada", action="a", subject="s")
        AuditEntry.objects.filter(pk=entry.pk).update(at=timezone.now() - timedelta(days=age))
    for key, hours in (("over", -1), ("open", 1)):
        Session.objects.create(session_key=key, expire_date=timezone.now() + timedelta(hours=hours))
    assert retention.prune() == 2
    assert [s.session_key for s in Session.objects.all()] == ["open"]


def a_run(number: int, **fields: object) -> Sediment:
    base = {"workload": "w", "params": "p", "completed": True, "outcome": "completed", "user": "ada"}
    at = timezone.now() - timedelta(hours=number)
    return Sediment.objects.create(owner=f"job:{number}", at=at, **{**base, **fields})


def test_of_each_key_the_runs_that_estimates_read_stay_and_marked_ones(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "NEWEST", 5)
    monkeypatch.setattr(pruning, "_seen", 0)
    newest = [a_run(number) for number in range(5)]
    a_run(5)
    marked = a_run(6, atypical=True, marked_by="ada", marked_at=timezone.now())
    other = a_run(7, params="q")
    assert retention.prune() == 1
    assert set(Sediment.objects.values_list("pk", flat=True)) == {s.pk for s in [*newest, marked, other]}
    assert retention.prune() == 0


def test_runs_with_other_arguments_do_not_push_out_those_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "NEWEST", 3)
    ours = a_run(50, script="s.py", duration=7)
    for number in range(6):
        a_run(number, params=f"other {number}", script="s.py", duration=9)
    found = rows.rows_for(Key("w", "", "p", "s.py", 1))
    assert [row.key.params for row in found] == ["other 0", "other 1", "other 2", "p"]
    assert found[-1].at == ours.at.timestamp()
    assert rows.durations("w", "p", "ada") == [7]
    assert rows.durations("w", "never run", "ada") == [9] * 6 + [7]
