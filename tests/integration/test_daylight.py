"""The night on which an hour comes twice: a run lasts as long as it lasted, and later stands after earlier."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from placement.domain.jobs import State
from placement.models import Job, Role
from placement.runner.record import ExitRecord
from placement.services.ending import Round, judged, store
from placement.services.learning import Windows
from placement.snapshots import knobs_now
from tests.integration.rows import a_finished, a_machine, a_running, a_user

pytestmark = pytest.mark.django_db
# Europe/Paris, 2026-10-25: at 03:00 summer time it is 02:00 winter time.
SUMMER = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # 02:30 by the clock on the wall
WINTER = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)  # 02:30 once more


@pytest.fixture
def reader(settings: Any) -> Client:
    settings.TIME_ZONE = "Europe/Paris"
    a_machine()
    client = Client()
    client.force_login(a_user("vic", Role.VIEWER))
    return client


def ended(job: Job) -> Job:
    record = ExitRecord(
        job.pk, 1, "boot", code=0, started_at=SUMMER.timestamp(), ended_at=WINTER.timestamp(), duration_s=3600.0
    )
    knobs, instrument = knobs_now()
    assert store([judged(job, record, "")], Round(Windows(), 5000.0, knobs, instrument, {}))
    job.refresh_from_db()
    return job


def test_a_run_from_half_past_two_to_half_past_two_took_an_hour(reader: Client) -> None:
    job = ended(a_running(a_user("ada"), started_at=SUMMER))
    assert (job.state, job.started_at, job.ended_at) == (State.FINISHED, SUMMER, WINTER)
    page = reader.get(f"/jobs/{job.pk}").content.decode()
    assert "1 h" in re.sub(r"<[^>]+>", "", page)
    assert "2026-10-25 02:30:00 CEST" in page
    assert "2026-10-25 02:30:00 CET" in page


def test_what_ended_later_stands_first_though_its_clock_shows_less(reader: Client) -> None:
    ada = a_user("ada")
    moments = [(0, 45), (1, 15), (0, 15), (2, 5)]  # 02:45, 02:15 again, 02:15, 03:05
    jobs = [
        a_finished(ada, name=f"run-{hour}-{minute}", ended_at=datetime(2026, 10, 25, hour, minute, tzinfo=UTC))
        for hour, minute in moments
    ]
    page = reader.get("/").content.decode()
    order = sorted(jobs, key=lambda job: page.index(job.name))
    assert [job.name for job in order] == ["run-2-5", "run-1-15", "run-0-45", "run-0-15"]
