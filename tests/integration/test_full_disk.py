"""No room in the database: nothing half-made stays, running jobs go on, and afterwards so does the rest."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client

from calibration import services as instrument
from calibration.models import Sediment
from placement import loop, tasks
from placement.domain.jobs import State
from placement.models import Job, Role
from scheduler_site import queues
from scheduler_site.quiet import OnceAMinute
from tests.integration.loop_here import Here, alive, here, leased
from tests.integration.rows import a_machine, a_user
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)
LONG = "true " + "x" * 100_000


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path) as made:
        yield made


@pytest.fixture
def client() -> Client:
    a_machine()
    client = Client(raise_request_exception=False)
    client.force_login(a_user("ada", Role.ADMIN))
    client.get("/")
    return client


@contextmanager
def no_more_pages() -> Iterator[None]:
    """Let the database file grow no further, as on a full disk."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM")
        cursor.execute("PRAGMA page_count")
        (pages,) = cursor.fetchone()
        cursor.execute(f"PRAGMA max_page_count = {int(pages)}")
        try:
            yield
        finally:
            cursor.execute("PRAGMA max_page_count = 1073741823")


def post(client: Client, path: str, body: dict[str, Any]) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


def test_a_submission_that_cannot_be_stored_is_503_with_a_sentence_and_leaves_nothing(
    client: Client, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RUNS = tmp_path / "runs"
    woken: list[int] = []
    monkeypatch.setattr("placement.wakes.wake_all", lambda: woken.append(1))
    body = {"command": LONG, "cwd": "/tmp"}
    with no_more_pages():
        refused = post(client, "/api/v1/jobs", body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable")
        assert "database or disk is full" in refused.json()["error"]["message"]
        page = client.post("/submit", {**body, "kind": "command", "gpu": "none", "workers": 1, "exclusive": "no",
                                       "form_key": "once", "priority": 0})  # fmt: skip
        assert page.status_code == 503
        assert "database or disk is full" in page.content.decode()
        assert client.get("/").status_code == 200
    assert not Job.objects.exists()
    assert not settings.RUNS.exists()
    assert woken == [], "what was not committed sends no message"
    assert post(client, "/api/v1/jobs", body).status_code == 201
    assert woken == [1]


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        pytest.param(OperationalError("database is locked"), 503, id="a lock that was not had in time"),
        pytest.param(OSError(28, "No space left on device"), 503, id="a full disk beside the database"),
        pytest.param(OSError(5, "Input/output error"), 500, id="another fault is still one"),
    ],
)
def test_what_may_pass_is_503_and_what_is_broken_is_500(
    client: Client, monkeypatch: pytest.MonkeyPatch, fault: Exception, status: int
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr("placement.services.jobs.submit", broken)
    assert post(client, "/api/v1/jobs", {"command": "x", "cwd": "/tmp"}).status_code == status


def full(*_: object, **__: object) -> None:
    raise OperationalError("database or disk is full")


def test_readings_that_cannot_be_stored_end_no_job_and_later_all_goes_on(
    node: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = tmp_path / "door"
    job = node.run(f"until [ -e {door} ]; do sleep 0.02; done; exit 7")
    with monkeypatch.context() as patch:
        patch.setattr(instrument, "store_reading", full)
        for _ in range(3):
            with pytest.raises(OperationalError):
                loop.tick(node.send, asked_by_end=True)
    job.refresh_from_db()
    assert (job.state, job.stop_requested_at, leased(job)) == (State.RUNNING, None, 1)

    door.touch()
    ended = node.end(job)
    assert (ended.outcome, ended.exit_code, leased()) == ("failed", 7, 0)
    assert node.end(node.submit("exit 0")).outcome == "completed"


def test_an_end_whose_figures_cannot_be_stored_yet_is_told_once_they_can(
    node: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = tmp_path / "door"
    job = node.run(f"until [ -e {door} ]; do sleep 0.02; done; exit 0")
    for _ in range(3):
        node.tick()
    door.touch()
    until(lambda: not alive(job.runner["pid"]), 20, "the end of its runner")
    with monkeypatch.context() as patch:
        patch.setattr(instrument, "keep", full)
        with pytest.raises(OperationalError):
            loop.tick(node.send, asked_by_end=True)
    job.refresh_from_db()
    assert (job.state, leased(job), Sediment.objects.count()) == (State.RUNNING, 1, 0)

    assert node.end(job).outcome == "completed"
    kept = Sediment.objects.get()
    assert kept.completed
    assert kept.peaks["ram"] > 0


def test_a_tick_that_fails_each_second_is_told_once_a_minute(
    node: Here, settings: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    filters = settings.LOGGING["handlers"]["stderr"]["filters"]
    assert [settings.LOGGING["filters"][name]["()"] for name in filters] == ["scheduler_site.quiet.OnceAMinute"]
    assert queues.rules("n")["worker_hijack_root_logger"] is False, "else the worker's lines pass by this filter"
    monkeypatch.setattr("placement.services.node_tick.look", full)
    monkeypatch.setattr(tasks.watcher, "saw_tick", lambda send: None)  # no thread of its own here
    caplog.set_level(logging.WARNING)
    caplog.handler.addFilter(once := OnceAMinute())
    try:
        for _ in range(5):
            loop.guarded(lambda: loop.tick(node.send, asked_by_end=True))
            tasks.tick.apply()
    finally:
        caplog.handler.removeFilter(once)

    told = [record.name for record in caplog.records if record.exc_info]
    assert sorted(told) == ["celery.app.trace", "placement.loop"]
