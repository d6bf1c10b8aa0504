"""Forecasts are stored after the cycle, kept with what became of them, and correct those that follow."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from placement.domain.forecasting.accuracy import Past, learned
from placement.domain.jobs import State
from placement.domain.submitting.submission import Submission
from placement.models import Forecast, ForecastRecord, Job, Role
from placement.services import admission, forecasting, jobs
from tests.integration.loop_here import Here, here
from tests.integration.rows import a_job, a_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    forecasting.forget()
    with here(settings, tmp_path) as made:
        yield made
    forecasting.forget()


def foretell() -> None:
    """Do what the loop does after a cycle, whether it is due or not."""
    admission.run()
    forecasting.run(admission.newest)


def busy(node: Here, limit: float = 600.0) -> Job:
    """Return a running job that has the device alone."""
    return node.run("sleep 300", gpu="one", exclusive="device", declared_vram=1 << 30, time_limit_s=limit)


def waiting(node: Here, **more: Any) -> Job:
    return node.submit("true", gpu="one", declared_vram=1 << 30, **more)


def test_who_waits_is_told_when_and_it_is_kept_with_what_it_became(node: Here) -> None:
    first = busy(node)
    job = waiting(node)
    foretell()
    told = Forecast.objects.get(job=job)
    assert told.expected_at is not None
    ahead = (told.expected_at - timezone.now()).total_seconds()
    assert 500.0 < ahead <= 601.0
    assert (told.sure, told.waits_for, told.keeps, told.device) == ("limit", [first.pk], True, first.device)
    kept = ForecastRecord.objects.get(job=job)
    assert (kept.number, kept.sure, kept.waited_s, kept.void) == (0, "limit", None, False)
    jobs.cancel(node.user, first.pk)
    node.end(first)
    node.end(job)
    forecasting.run(None)
    kept.refresh_from_db()
    job.refresh_from_db()
    assert job.admitted_at is not None
    assert kept.waited_s == pytest.approx((job.admitted_at - kept.at).total_seconds())
    assert not Forecast.objects.exists(), "nothing is told to nobody"


def test_a_job_of_a_later_time_is_told_that_time_and_teaches_nothing(node: Here) -> None:
    busy(node, limit=60.0)
    job = waiting(node, not_before=time.time() + 3 * 86_400.0)
    behind = waiting(node, after=((job.pk, "any"),))
    forecasting._last.record = learned([Past("limit", 600.0, 600.0, 600.0, 600.0, 30.0)] * 50)
    forecasting._last.record_at = time.monotonic()
    foretell()
    assert job.not_before is not None
    for one in (job, behind):
        told = Forecast.objects.get(job=one)
        assert told.expected_at is not None
        assert told.expected_at >= job.not_before - timedelta(seconds=1)
    assert not ForecastRecord.objects.filter(job__in=[job, behind]).exists()


def test_before_a_long_queue_a_submission_is_told_how_many_wait_and_no_time(
    node: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy(node)
    waiting(node)
    admission.run()
    asked = Submission(name="x", command="true", cwd="/tmp", gpu="one", declared_vram=1 << 30)
    planned = jobs.preview(node.user, asked).decision["planned"]
    assert planned["in_s"] is not None
    monkeypatch.setattr(forecasting, "MOST_ASKED", 0)
    planned = jobs.preview(node.user, asked).decision["planned"]
    assert (planned["in_s"], planned["why_none"][:24]) == (None, "1 jobs wait before it. O")


def test_a_tick_foretells_by_itself(node: Here) -> None:
    busy(node)
    job = waiting(node)
    forecasting.forget()
    node.tick()
    assert Forecast.objects.filter(job=job).exists()


def test_a_database_that_is_busy_costs_the_forecast_and_not_the_tick(
    node: Here, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def busy_database() -> None:
        raise OperationalError("database is locked")

    job = node.submit("true")
    forecasting.forget()
    monkeypatch.setattr(forecasting, "close", busy_database)
    node.end(job)
    forecasting.forget()
    assert forecasting.run_if_due(None) is False
    assert "no forecasts this time: database is locked" in caplog.text


def test_what_has_not_moved_is_not_written_again(node: Here) -> None:
    busy(node)
    waiting(node)
    foretell()
    admission.run()
    with CaptureQueriesContext(
        connection,
    ) as seen:
        forecasting.run(admission.newest)
    written = [q["sql"] for q in seen.captured_queries if q["sql"].lstrip().startswith(("INSERT", "UPDATE", "DELETE"))]
    assert written == []


def test_a_forecast_that_moves_far_is_kept_beside_the_first(node: Here) -> None:
    first = busy(node)
    job = waiting(node)
    foretell()
    ForecastRecord.objects.update(at=timezone.now() - timedelta(seconds=90))
    Job.objects.filter(pk=first.pk).update(time_limit_s=40_000.0)
    foretell()
    assert list(ForecastRecord.objects.filter(job=job).order_by("number").values_list("number", flat=True)) == [0, 1]
    told = Forecast.objects.get(job=job)
    assert told.expected_at is not None
    assert (told.expected_at - timezone.now()).total_seconds() > 30_000


def test_a_held_job_is_told_why_not_and_its_forecast_counts_no_more(node: Here) -> None:
    busy(node)
    job = waiting(node)
    foretell()
    jobs.hold(node.user, job.pk)
    foretell()
    told = Forecast.objects.get(job=job)
    assert told.expected_at is None
    assert "held by ann" in told.why_none
    assert ForecastRecord.objects.get(job=job, number=0).void


def test_who_is_cancelled_while_waiting_is_neither_right_nor_wrong(node: Here) -> None:
    busy(node)
    job = waiting(node)
    foretell()
    jobs.cancel(node.user, job.pk)
    forecasting.run(None)
    kept = ForecastRecord.objects.get(job=job)
    assert (kept.void, kept.waited_s) == (True, None)


def test_the_record_corrects_later_forecasts(node: Here) -> None:
    """Forty limits of ten minutes that were all over after five: the next such forecast is earlier."""
    user = a_user("bob", Role.SUBMITTER)
    at = timezone.now() - timedelta(hours=1)
    for _ in range(40):
        past = a_job(user, state=State.FINISHED.value, outcome="completed", admitted_at=at + timedelta(seconds=300))
        ForecastRecord.objects.create(
            job=past, number=0, at=at, sure="limit", in_s=600, late_s=600, play_s=600, play_late_s=600, waited_s=300
        )
    first = busy(node, 1200.0)
    second = node.submit("true", gpu="one", declared_vram=1 << 30, exclusive="device", time_limit_s=60)
    third = waiting(node)
    foretell()
    told = Forecast.objects.get(job=third)
    assert told.expected_at is not None
    assert told.late_at is not None
    ahead = (told.expected_at - timezone.now()).total_seconds()
    assert 500.0 < ahead < 700.0, "about half of 1260 s"
    assert told.late_at >= told.expected_at
    kept = Forecast.objects.get(job=second)
    assert kept.keeps
    assert kept.expected_at is not None
    assert kept.expected_at <= timezone.now() + timedelta(seconds=1200)
    assert first.pk in kept.waits_for
