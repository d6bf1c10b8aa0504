"""What would start a waiting job, as its page words it."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from placement.models import Job
from placement.selectors import remedy
from placement.selectors.expected import Expected
from tests.integration.rows import GIB, a_job, a_machine, a_user

pytestmark = pytest.mark.django_db


def a_waiting() -> Job:
    a_machine()
    return a_job(a_user("ada"), declared_vram=GIB, declared_ram=GIB)


def test_ways_are_kept_for_viewers_of_one_job_and_read_anew_for_another_decision(monkeypatch):
    job = a_waiting()
    calls: list[int] = []
    monkeypatch.setattr(remedy, "remedies", lambda *a, **k: calls.append(1) or ())
    for _ in range(3):
        remedy.ways(job, None, lambda _: "", anyhow=60.0)
    assert len(calls) == 1
    job.decided_at = timezone.now()
    remedy.ways(job, None, lambda _: "", anyhow=60.0)
    assert len(calls) == 2


def test_a_guess_that_the_forecast_does_not_share_is_not_told(monkeypatch):
    job, now = a_waiting(), timezone.now()
    soon = remedy.Remedy((remedy.Ends((7,)),), "node", None, "gpu0", GIB, in_s=60.0, sure=remedy.Sure.GUESS)
    monkeypatch.setattr(remedy, "remedies", lambda *a, **k: (soon,))

    def told(minutes: int, *waits_for: int) -> tuple[datetime | None, str]:
        at = now + timedelta(minutes=minutes)
        foretold = Expected(at, now + timedelta(minutes=minutes / 2), None, "guess", waits_for, "", False)
        (way,) = remedy.ways(job, foretold, lambda _: "")
        return way.at, way.bold

    assert told(20) == (None, "when #7 ends")
    assert told(20, 7) == (now + timedelta(minutes=20), "when #7 ends")
    assert told(1)[0] is not None
