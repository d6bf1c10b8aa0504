"""What people read of forecasts: on the queue, on a job's page, before they submit, and how good they were."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.test import Client

from placement.models import Forecast, Job, Role
from placement.selectors import expected
from tests.integration.rows import a_finished, a_forecast, a_job, a_machine, a_record, a_running, a_user

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no record of another test be remembered."""
    monkeypatch.setattr(expected, "_FRESH", -1.0)


@pytest.fixture
def ada() -> Any:
    return a_user("ada", Role.OPERATOR)


@pytest.fixture
def page(client: Client, ada: Any) -> Any:
    client.force_login(ada)

    def read(path: str) -> str:
        response = client.get(path)
        assert response.status_code == 200
        text = re.sub(r"<title>.*?</title>|<[^>]+>", " ", response.content.decode(), flags=re.DOTALL)
        return re.sub(r"\s+", " ", unescape(text))

    return read


def started(ada: Any, count: int, *, right: int, **more: Any) -> list[Job]:
    """Store forecasts of ten minutes, of which so many came true by the later time, and half by the earlier."""
    jobs = [a_finished(ada) for _ in range(count)]
    for n, job in enumerate(jobs):
        waited = 300.0 if n % 2 else 900.0
        a_record(job, 600.0, waited if n < right else 5000.0, 1200.0, **more)
    return jobs


def test_the_queue_says_in_how_long_by_when_and_how_sure_that_is(page: Any, ada: Any) -> None:
    a_machine()
    started(ada, 40, right=36)
    job = a_job(ada)
    a_forecast(job, 780.0, 1500.0)
    text = page("/")
    assert re.search(r"in about 1[12] min \(by +(\S+ )?\d\d:\d\d ?\)", text), text
    assert "how good forecasts are" in text
    text = page(f"/jobs/{job.pk}")
    assert re.search(r"in about 1[12] min \(by +(\S+ )?\d\d:\d\d ?; 9 of 10 such forecasts were right\)", text), text


def test_while_the_record_is_short_it_is_not_quoted(page: Any, ada: Any) -> None:
    a_machine()
    started(ada, 5, right=5)
    a_forecast(a_job(ada), 780.0, 1500.0)
    text = page("/")
    assert re.search(r"in about 1[12] min \(by", text)
    assert "such forecasts were right" not in text


def test_a_guess_is_a_stretch_of_time_and_not_a_moment(page: Any, ada: Any) -> None:
    a_machine()
    job = a_job(ada)
    a_forecast(job, 7200.0, 14_400.0, sure="guess", keeps=False)
    for text in (page("/"), page(f"/jobs/{job.pk}")):
        assert re.search(r"some time from +(\S+ )?\d\d:\d\d +to +(\S+ )?\d\d:\d\d +\(a guess\)", text)
        assert "in about" not in text


def test_a_guess_without_a_late_end_is_only_a_near_one(page: Any, ada: Any) -> None:
    job = a_job(ada)
    told = a_forecast(job, 7200.0, None, sure="guess", keeps=False)
    near = r"Expected to start not before +(\S+ )?\d\d:\d\d +\(a guess\)"
    assert re.search(near, page(f"/jobs/{job.pk}"))
    whole = told.made_at.replace(second=0, microsecond=0)
    Forecast.objects.update(made_at=whole, expected_at=whole + timedelta(seconds=20), late_at=whole.replace(second=50))
    assert re.search(near, page(f"/jobs/{job.pk}"))  # not "from 04:02 to 04:02"


def test_the_job_page_says_who_has_to_end_first(page: Any, ada: Any) -> None:
    a_machine()
    first, job = a_running(ada), a_job(ada)
    a_forecast(job, 780.0, 1500.0, waits_for=[first.pk])
    text = page(f"/jobs/{job.pk}")
    assert re.search(r"Expected to start in about 1[12] min \(by", text)
    assert re.search(rf"when +#{first.pk} +has ended", text)
    assert "Nothing younger may delay that." in text
    assert "How good forecasts are" in text


def test_where_no_time_can_be_told_the_reason_is(page: Any, ada: Any) -> None:
    job = a_job(ada)
    why = "16.0 GiB of pid 4242 (python) on gpu0: nobody knows when that ends."
    a_forecast(job, sure="guess", expected_at=None, late_at=None, why_none=why, keeps=False)
    assert f"When it starts cannot be told: {why}" in page(f"/jobs/{job.pk}")
    assert "no forecast" in page("/")


def test_a_moment_that_has_passed_is_any_moment_now(page: Any, ada: Any) -> None:
    job = a_job(ada)
    a_forecast(job, -30.0, 600.0)
    assert "Expected to start any moment now" in page(f"/jobs/{job.pk}")


def test_a_running_job_says_nothing_of_starts(page: Any, ada: Any) -> None:
    job = a_running(ada)
    a_forecast(job)
    assert "Expected to start" not in page(f"/jobs/{job.pk}")


def test_how_good_they_were_by_basis_and_by_how_far_ahead(page: Any, ada: Any) -> None:
    started(ada, 20, right=18)
    for job in (a_finished(ada), a_finished(ada)):
        a_record(job, 7200.0, 8000.0, 9000.0, sure="guess")
    text = page("/forecasts/")
    assert "The last 7 days · 22 forecasts" in text
    assert "91 % had started by the later time, where 90 % should" in text
    assert re.search(r"what earlier runs took +20 +90 % +45 %", text)
    assert re.search(r"a guess: of some run nothing was known +2 +100 % +0 % +13 min +10 %", text)
    assert re.search(r"10 min to 1 h +20 +90 %", text)
    assert re.search(r"1 to 6 h +2 +100 %", text)


def test_without_a_record_it_says_so(page: Any, ada: Any) -> None:
    assert page("/forecasts/").count("Nobody had to wait long enough to be told a time.") == 2
    a_record(a_job(ada), 6000.0, None, 12_000.0)
    assert "Nobody who was told a time has started yet" in page("/forecasts/")


def test_held_jobs_do_not_count_and_untold_ones_are_named(page: Any, ada: Any) -> None:
    started(ada, 3, right=3)
    a_record(a_finished(ada), 600.0, 90_000.0, 1200.0, void=True)
    job = a_job(ada)
    record = a_record(job, 0.0, None, 0.0, void=True)
    type(record).objects.filter(pk=record.pk).update(in_s=None, late_s=None, play_s=None, play_late_s=None)
    text = page("/forecasts/")
    assert "3 forecasts" in text
    assert "100 % had started by the later time" in text
    assert "1 job could be told no time at first" in text


def test_a_visitor_without_a_login_sees_nothing(client: Client) -> None:
    assert client.get("/forecasts/").status_code == 302
    assert client.get("/api/v1/forecasts").status_code == 401


def test_the_api_tells_the_forecast_and_the_figures(client: Client, ada: Any) -> None:
    a_machine()
    client.force_login(ada)
    started(ada, 20, right=18)
    job = a_job(ada)
    told = a_forecast(job, 600.0, 1200.0)
    one = client.get(f"/api/v1/jobs/{job.pk}").json()["job"]["forecast"]
    assert (one["sure"], one["waits_for"], one["keeps"], one["why_none"]) == ("learned", [38], True, "")
    assert one["expected_at"][:19] == told.expected_at.isoformat()[:19]
    queued = client.get("/api/v1/queue").json()["queued"][0]["forecast"]
    assert queued["late_at"][:19] == told.late_at.isoformat()[:19]
    figures = client.get("/api/v1/forecasts").json()["last_7_days"]
    assert (figures["count"], figures["within_late"], figures["untold"]) == (20, 0.9, 0)
    assert figures["by_sure"]["limit"]["within_late"] is None
    assert figures["by_ahead"]["10 min to 1 h"]["count"] == 20


def test_before_submitting_one_reads_when_it_would_start(client: Client) -> None:
    a_machine()
    ada = a_user("ada", Role.ADMIN)
    client.force_login(ada)
    for uuid in ("GPU-aaaa", "GPU-bbbb"):
        charge = {"granted": 23 << 30, "held": 23 << 30, "at_start": 23 << 30, "cap": None, "margin": 0}
        a_running(
            ada, device=uuid, time_limit_s=3600.0, used={uuid: 1 << 30}, charges={uuid: charge}, admitted_clock=None
        )
    asked = {
        "command": "python train.py",
        "gpu": "one",
        "cwd": "/tmp",
        "declared_vram": 20 << 30,
        "declared_ram": 1 << 30,
    }
    planned = client.post("/api/v1/estimate", asked, content_type="application/json").json()["decision"]["planned"]
    assert 3000.0 < planned["in_s"] <= 3600.0
    assert planned["late_s"] >= planned["in_s"]
    form = {**asked, "form_key": "one", "kind": "command", "exclusive": "no", "workers": 1}
    form |= {"declared_vram": "20 GiB", "declared_ram": "1 GiB"}
    assert "Expected to start" in client.post("/submit/estimate", form).content.decode()
