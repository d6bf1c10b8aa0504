"""Two clicks at one moment make one job, and many open pages at once meet no error."""

from __future__ import annotations

import json
import re
import threading
import time
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from calibration import services as instrument
from calibration.domain.samples import Attribution, PoolSample, PoolState, Reading
from placement.models import Forecast, Job, Role
from placement.selectors import kept
from tests.integration.databases import together
from tests.integration.rows import GIB, a_forecast, a_job, a_machine, a_user

FRAGMENTS = ("/fragments/queue?v=x", "/fragments/pools?v=x", "/api/v1/queue")
pytestmark = pytest.mark.django_db(transaction=True)


def test_two_posts_of_one_form_at_the_same_moment_make_one_job_and_both_lead_to_it() -> None:
    a_machine()
    user = a_user("ann", Role.ADMIN)
    clients = [Client(), Client()]
    for client in clients:
        client.force_login(user)
    for number in range(5):
        body = json.dumps({"command": "exit 0", "cwd": "/tmp", "form_key": f"form-{number}"})

        def click(client: Client, body: str = body) -> Any:
            return client.post("/api/v1/jobs", body, content_type="application/json")

        first, second = together(*[lambda client=client: click(client) for client in clients])
        assert (first.status_code, second.status_code) == (201, 201)
        assert first.json()["job"]["id"] == second.json()["job"]["id"]
        assert Job.objects.count() == number + 1


def test_a_job_is_run_again_once_by_a_request_that_is_sent_twice() -> None:
    a_machine()
    user = a_user("ann", Role.ADMIN)
    old, other = (a_job(user, state="finished", outcome="failed", ended_at=timezone.now()) for _ in range(2))
    clients = [Client(), Client()]
    for client in clients:
        client.force_login(user)

    def again(client: Client, number: int = old.pk, key: str = "once") -> Any:
        return client.post(f"/api/v1/jobs/{number}/retry", {"form_key": key}, content_type="application/json")

    first, second = together(*[lambda client=client: again(client) for client in clients])
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json()["job"]["id"] == second.json()["job"]["id"]
    assert Job.objects.get(retry_of=old).form_key == "once"
    assert again(clients[0], key="twice").json()["job"]["id"] != first.json()["job"]["id"]
    refused = again(clients[0], other.pk)
    assert refused.status_code == 409
    assert "another one" in refused.json()["error"]["message"]
    page = clients[0].get(f"/jobs/{other.pk}").content.decode()
    (key,) = re.findall(rf'/jobs/{other.pk}/retry">.*?name="form_key" value="([^"]+)"', page)
    for client in clients:
        client.post(f"/jobs/{other.pk}/retry", {"form_key": key})
    assert Job.objects.filter(retry_of=other).count() == 1


def test_thirty_open_pages_beside_a_loop_that_writes_meet_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "POLLED", 0.0)  # every poll reads what is committed
    a_machine()
    user = a_user("ann", Role.ADMIN)
    job = a_job(user)
    over, until_at, statuses = threading.Event(), time.monotonic() + 3, set[int]()

    def write() -> int:
        written = 0
        if connection.vendor == "sqlite":  # the loop would come again a second later; here it waits its turn
            connection.cursor().execute("PRAGMA busy_timeout = 60000")
        while not over.wait(0.02) or written <= 5:
            ram = PoolSample("ram", "ram", "RAM", PoolState.OK, 64 * GIB, 56 * GIB, 8 * GIB, read_at=time.monotonic())
            reading = Reading("atlas", "boot", time.monotonic(), time.time(), {"ram": ram}, {})
            empty = Attribution({}, {}, {}, {}, {}, {})
            instrument.store_reading(reading, empty, {"ram": ram.free}, (), {}, time.monotonic())
            Job.objects.filter(pk=job.pk).update(decided_at=timezone.now(), state=("queued", "running")[written % 2])
            Forecast.objects.filter(job=job).delete()
            a_forecast(job)
            written += 1
        return written

    def look(number: int) -> int:
        client, polls = Client(), 0
        client.force_login(user)
        try:
            while not polls or time.monotonic() < until_at:
                for path in (*FRAGMENTS, f"/jobs/{job.pk}/fragment?v=x"):
                    statuses.add(client.get(path, headers={"HX-Request": "true"}).status_code)
                    polls += 1
        finally:
            if number == 0:
                over.set()
        return polls

    written, *polls = together(write, *[lambda number=number: look(number) for number in range(30)])
    assert statuses <= {200, 204}
    assert all(polls)
    assert written > 5
