"""A job's page and the API say which cap is in force and what says so."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from placement.domain.containing.device_caps import Applied, Given, cap_in_force
from placement.models import Job
from tests.builders import GIB, MIB
from tests.integration.rows import UUIDS, a_job, a_machine, a_user
from tests.integration.test_pages import text_of

pytestmark = pytest.mark.django_db


def capped(user: User, given: Given) -> Job:
    charge: dict[str, Any] = {"granted": 8 * GIB, "held": 8 * GIB, "at_start": 8 * GIB, "cap": given.cap}
    found = {UUIDS[0]: {**charge, "force": cap_in_force(given).as_data()}}
    return a_job(user, state="running", device=UUIDS[0], node="atlas", charges=found, used={UUIDS[0]: GIB})


@pytest.fixture
def ada(client: Client) -> User:
    a_machine()
    user = a_user("ada")
    client.force_login(user)
    return user


def test_a_receipt_and_a_learned_context(client: Client, ada: User) -> None:
    told = Given(8 * GIB, applied=(Applied(77, "torch", 7 * GIB),), armed=(77, 78), context=420 * MIB, context_runs=7)
    job = capped(ada, told)
    shown = text_of(client.get(f"/jobs/{job.pk}"))
    assert "capped in torch at 7.0 GiB and its context (receipt of 1 process)" in shown
    assert "armed in pid 77, 78 · applied in pid 77" in shown
    assert "a context is taken to cost 420 MiB (learned from 7 runs)" in shown
    force = client.get(f"/api/v1/jobs/{job.pk}").json()["job"]["charges"][UUIDS[0]]["force"]
    assert (force["kind"], force["evidence"]["applied"]) == ("framework", [77])


def test_nobody_keeps_it_and_why(client: Client, ada: User) -> None:
    told = Given(8 * GIB, on_device=(77,), driver_why_not="<b>no</b>", kept=("CUPY_GPU_MEMORY_LIMIT",), context=GIB)
    answer = client.get(f"/jobs/{capped(ada, told).pk}")
    assert "watched, not capped: no receipt came" in text_of(answer)
    assert "no limit by the driver: &lt;b&gt;no&lt;/b&gt; · as the submission set it: CUPY_GPU_MEMORY_LIMIT" in (
        answer.content.decode()
    )


def test_a_job_of_before_says_nothing(client: Client, ada: User) -> None:
    job = capped(ada, Given(8 * GIB))
    del job.charges[UUIDS[0]]["force"]
    job.save()
    assert "capped" not in text_of(client.get(f"/jobs/{job.pk}"))
