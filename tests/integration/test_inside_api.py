"""The API for programs inside jobs: their job's token opens it, and nothing else does; it opens nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from calibration import clock
from placement.api.service import schema
from placement.models import InsideRequest, Job
from placement.services import admission, cycle_row, job_tokens, tokens
from tests.integration.rows import GIB, UUIDS, a_machine, a_running, a_user

pytestmark = pytest.mark.django_db
ROOT = "/api/v1/inside"


@pytest.fixture
def job() -> Job:
    a_machine()
    cycle_row.ensure()
    return a_running(a_user("ada"), started_clock=clock.now(), admitted_clock=clock.now())


def said(client: Client, token: str, path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    if body is None:
        return client.get(f"{ROOT}/{path}", headers=headers)
    return client.post(f"{ROOT}/{path}", json.dumps(body), content_type="application/json", headers=headers)


def body(gib: int = 6, **more: Any) -> dict[str, Any]:
    return {"key": "k", "ask": {"kind": "gpu", "backend": "cuda", "group_bytes": gib * GIB}, **more}


def test_a_job_asks_waits_is_granted_and_lets_go(client: Client, job: Job) -> None:
    token = job_tokens.of(job)
    first = said(client, token, "requests", body(unknown="ignored"))
    assert first.status_code == 201
    told = first.json()
    assert told["state"] == "waiting"
    assert told["reasons"]
    assert said(client, token, "requests", body()).status_code == 200

    admission.run()
    told = said(client, token, f"requests/{told['id']}").json()
    assert told["state"] == "granted"
    assert told["lease"]["members"][0]["uuid"] in UUIDS
    assert told["notices"] == []

    for _ in range(2):  # again is no mistake
        assert said(client, token, f"leases/{told['lease']['id']}/release", {}).status_code == 200
    assert said(client, token, f"requests/{told['id']}").json()["state"] == "withdrawn"
    assert said(client, token, "notices").json() == {"notices": []}


def test_what_is_granted_before_it_is_withdrawn_is_the_caller_s_or_given_back(client: Client, job: Job) -> None:
    token = job_tokens.of(job)
    said(client, token, "requests", body())
    admission.run()
    assert said(client, token, "requests/withdraw", {"key": "k"}).json()["state"] == "granted"
    assert said(client, token, "requests/withdraw", {"key": "k", "give_back": True}).json()["state"] == "withdrawn"
    assert said(client, token, "requests/withdraw", {"key": "never came"}).status_code == 404


def test_a_step_ends_and_its_waiting_requests_with_it(client: Client, job: Job) -> None:
    token = job_tokens.of(job)
    step = {"key": "ab12", "step": "train", "iteration": 0, "execution": 1, "restartable": True}
    told = said(client, token, "requests", body(session=step, process={"pid": 1, "started": None})).json()
    ended = said(client, token, "sessions/ab12/end", {"execution": 1, "outcome": "finished"})
    assert ended.json() == {"done": True}
    assert said(client, token, f"requests/{told['id']}").json()["state"] == "withdrawn"


def test_a_lease_may_outlive_its_job_for_a_time(client: Client, job: Job) -> None:
    token = job_tokens.of(job)
    lease = said(client, token, "requests", body()).json()["id"]
    early = said(client, token, f"leases/{lease}/outlive", {"artifact": "index", "seconds": 60})
    assert early.status_code == 409
    admission.run()
    assert said(client, token, f"leases/{lease}/outlive", {"artifact": "index", "seconds": 60}).status_code == 200
    assert said(client, token, f"leases/{lease}/outlive", {"artifact": "index", "seconds": 1e9}).status_code == 409
    assert InsideRequest.objects.get(pk=lease).artifact == "index"


def test_impossible_comes_back_with_its_arithmetic(client: Client, job: Job) -> None:
    told = said(client, job_tokens.of(job), "requests", body(64)).json()
    assert (told["state"], told["refusal"]["code"]) == ("refused", "impossible")
    assert len(told["refusal"]["arithmetic"]) == 2


def test_a_token_is_dead_when_its_job_has_ended_and_good_for_that_job_alone(client: Client, job: Job) -> None:
    other = a_running(job.user)
    request = said(client, job_tokens.of(job), "requests", body()).json()["id"]
    assert said(client, job_tokens.of(other), f"requests/{request}").status_code == 404
    assert said(client, job_tokens.of(other), f"leases/{request}/release", {}).status_code == 404

    text = job_tokens.of(job)
    for wrong in (text[:-1] + ("A" if text[-1] != "A" else "B"), text.replace(f"_{job.pk}_", f"_{other.pk}_"), "tgj_x"):
        assert said(client, wrong, "notices").status_code in (401, 429)
    Job.objects.filter(pk=job.pk).update(attempt=2)
    assert said(client, text, "notices").status_code in (401, 429)
    Job.objects.filter(pk=job.pk).update(attempt=1, state="finished", outcome="completed")
    assert said(client, text, "notices").status_code in (401, 429)


def test_a_job_s_token_opens_nothing_else(client: Client, job: Job) -> None:
    headers = {"Authorization": f"Bearer {job_tokens.of(job)}"}
    asked = 0
    for path, methods in schema()["paths"].items():
        for method, one in methods.items():
            if one["x-role"] == "job":
                continue
            filled = path
            for name in one["parameters"]:
                filled = filled.replace(f"{{{name['name']}}}", "1")
            answer = client.generic(method.upper(), filled, "{}", content_type="application/json", headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "job_token"), filled
            asked += 1
    assert asked > 30


def test_nobody_else_gets_in(client: Client, job: Job) -> None:
    _, text = tokens.make(a_user("root"), "mine", "full")
    assert said(client, text, "notices").status_code == 401
    client.force_login(job.user)
    assert client.get(f"{ROOT}/notices").status_code == 401
