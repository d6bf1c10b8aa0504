from __future__ import annotations

import json

import pytest
from django.test import Client

from placement.models import Device, Job, Node, Role
from tests.integration.learned import a_run
from tests.integration.rows import GIB, UUIDS, a_job, a_machine, a_pool, a_running, a_user

pytestmark = pytest.mark.django_db

FORM = "application/x-www-form-urlencoded"


@pytest.fixture
def ada(client: Client):
    user = a_user("ada")
    client.force_login(user)
    a_machine()
    return user


def post(client: Client, path: str, body: object):
    data = body if isinstance(body, str | bytes) else json.dumps(body)
    return client.post(path, data, content_type="application/json")


def error(answer) -> dict:
    """Return the error of an answer after checking that it has the one shape."""
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message", "fields", "detail"}
    assert body["error"]["message"]
    return body["error"]


def test_the_queue_explains_every_decision_in_one_call(client, ada):
    waiting, running = a_job(ada), a_running(ada)
    a_pool("atlas", UUIDS[1], "gpu1", 24 * GIB, 12 * GIB, owners={f"job:{running.pk}": 11 * GIB}, external=GIB)
    body = client.get("/api/v1/queue").json()
    (queued,) = body["queued"]
    assert queued["id"] == waiting.pk
    figures = queued["decision"]["candidates"][0]["checks"][1]["figures"]
    assert figures["total"] - figures["used"] - figures["growth"] - figures["kept"] == figures["room"]
    assert queued["decision"]["since"]
    (run,) = body["running"]
    assert run["admit_basis"] == "measured"
    assert run["admit_charges"] == {"vram": 13 * 1024, "ram": 4 * 1024}
    assert run["charges"][UUIDS[1]]["granted"] == 13 * GIB
    assert body["measured_free_mb"] == {"vram": (23 + 12) * 1024, "ram": 56 * 1024}
    assert body["pending_reservation_mb"] == {"vram": 2 * 1024, "ram": 4 * 1024}
    vram = body["attribution"]["resources"]["vram"]
    assert vram["jobs_mb"] == {str(running.pk): 11 * 1024}
    assert (vram["used_total_mb"], vram["external_mb"]) == (13 * 1024, 1024)


def test_amounts_are_truncated_to_whole_mib_and_unknown_stays_null(client, ada):
    job = a_running(ada)
    a_pool("atlas", UUIDS[0], "gpu0", 24 * GIB, GIB + 1, external=None, owners={f"job:{job.pk}": None})
    body = client.get("/api/v1/queue").json()
    vram = body["attribution"]["resources"]["vram"]
    assert vram["external_mb"] is None
    assert vram["attributed_mb"] is None
    assert vram["jobs_mb"] == {str(job.pk): None}
    assert vram["used_total_mb"] == 2 * 1024
    a_pool("atlas", UUIDS[0], "gpu0", 24 * GIB, GIB, free=None)
    assert client.get("/api/v1/queue").json()["measured_free_mb"]["vram"] is None


def test_command_names_of_outsiders_are_for_operators(client, ada):
    a_pool("atlas", UUIDS[0], "gpu0", 24 * GIB, GIB, external_who=[[9, "u2", "vllm-serve", GIB]])
    assert "vllm-serve" not in client.get("/api/v1/queue").content.decode()
    operator = Client()
    operator.force_login(a_user("olga", Role.OPERATOR))
    assert "vllm-serve" in operator.get("/api/v1/queue").content.decode()


def test_submit_look_and_cancel(client, ada):
    made = post(client, "/api/v1/jobs", {"command": "sleep 60", "cwd": "/tmp", "declared_ram": "1 GiB"})
    assert made.status_code == 201
    job = made.json()["job"]
    assert (job["name"], job["declared_ram"], job["state"]) == ("sleep 60", GIB, "queued")
    assert client.get(made["Location"]).json()["job"]["command"] == "sleep 60"
    said = post(client, f"/api/v1/jobs/{job['id']}/cancel", {}).json()
    assert said["job"]["outcome"] == "cancelled"
    assert "cancelled" in said["message"]


def test_a_device_is_asked_for_by_its_uuid_or_by_the_name_that_pages_show(client, ada):
    def wanted(**fields: str) -> str | None:
        body = {"command": "sleep 60", "cwd": "/tmp", "gpu": "one", "declared_vram": "1 GiB", **fields}
        answer = post(client, "/api/v1/jobs", body)
        return Job.objects.latest("pk").device_wanted if answer.status_code == 201 else error(answer)["message"]

    assert wanted(device=UUIDS[1]) == wanted(device="gpu1") == wanted(device=" GPU1 ") == UUIDS[1]
    assert "no device gpu7 is declared" in str(wanted(device="gpu7"))
    there = Device.objects.get(uuid=UUIDS[1])
    older = Device.objects.create(uuid="GPU-older", node=there.node, name="GPU1", index=7, declared=there.declared)
    assert (wanted(device="gpu1"), wanted(device="GPU1")) == (UUIDS[1], "GPU-older")
    older.delete()
    node = Node.objects.create(name="other")
    Device.objects.create(uuid="GPU-other", node=node, name="gpu1", index=1, declared=there.declared)
    said = f"There is a gpu1 on each of {there.node.name}, other; say which node"
    assert wanted(device="gpu1") == f"Nothing was submitted: {said}, or the UUID of the device."
    assert wanted(device="gpu1", node=there.node.name) == UUIDS[1]


def test_a_query_that_means_nothing_finds_nothing_instead_of_everything(client, ada):
    answer = client.get("/api/v1/jobs?state=queued")
    assert answer.status_code == 400
    assert "known here are whose, q, outcome" in error(answer)["fields"]["state"]
    assert "none is known here" in error(client.get("/api/v1/devices?node=a"))["fields"]["node"]
    assert client.get("/api/v1/jobs?outcome=queued").status_code == 200
    twice = error(client.get("/api/v1/jobs?whose=mine&whose=all"))
    assert twice["fields"] == {"whose": "It is there 2 times, and can be one value only; send the one that is meant."}


def test_an_ended_job_tells_the_most_that_was_seen_and_a_running_one_does_not_yet(client, ada):
    running = a_running(ada)
    assert client.get(f"/api/v1/jobs/{running.pk}").json()["job"]["peak"] is None
    ended, _ = a_run(ada, ram=2, vram=9)
    Job.objects.filter(pk=ended.pk).update(device=UUIDS[1], used={"ram": GIB, UUIDS[1]: 0})
    job = client.get(f"/api/v1/jobs/{ended.pk}").json()["job"]
    assert job["peak"] == {"ram": 2 * GIB, UUIDS[1]: 9 * GIB}
    assert job["used"] == {"ram": GIB, UUIDS[1]: 0}


def test_the_same_key_twice_makes_one_job(client, ada):
    body = {"command": "sleep 60", "cwd": "/tmp", "form_key": "once"}
    first, second = (post(client, "/api/v1/jobs", body).json()["job"]["id"] for _ in range(2))
    assert first == second
    assert Job.objects.count() == 1


@pytest.mark.parametrize("more", [{}, {"command": "echo {n}", "sweep": {"n": "1..3"}}])
def test_a_key_that_somebody_else_sent_makes_nothing_and_shows_nothing(client, ada, more):
    body = {"command": "sleep 60", "cwd": "/tmp", "form_key": "once", **more}
    assert post(client, "/api/v1/jobs", body).status_code == 201
    count = Job.objects.count()
    client.force_login(a_user("eve"))
    answer = post(client, "/api/v1/jobs", body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "refused")
    assert "Somebody else" in answer.json()["error"]["message"]
    assert Job.objects.count() == count


def test_an_estimate_stores_nothing(client, ada):
    body = post(client, "/api/v1/estimate", {"command": "python x.py", "cwd": "/tmp", "gpu": "one"}).json()
    assert body["estimate"]["basis"] == "cold_start"
    assert body["decision"]["candidates"]
    assert isinstance(body["fits_now"], bool)
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    "field, value",
    [
        ("workers", [4]),
        ("workers", "4"),
        ("workers", 0),
        ("workers", -1),
        ("workers", 1.5),
        ("workers", True),
        ("workers", 10**30),
        ("declared_vram", "24 parsecs"),
        ("declared_vram", -1),
        ("declared_vram", 0),
        ("declared_vram", []),
        ("declared_vram", 10**30),
        ("declared_ram", "NaN"),
        ("time_limit_s", "soon"),
        ("time_limit_s", -5),
        ("priority", 5),
        ("priority", {}),
        ("name", 7),
        ("name", "a\u0000b"),
        ("command", ["ls"]),
        ("argv", "ls"),
        ("argv", [1]),
        ("params", []),
        ("environment", "A=1"),
        ("environment", {"A": 1}),
        ("environment", {"CUDA_VISIBLE_DEVICES": "0"}),
        ("gpu", "two"),
        ("exclusive", 1),
        ("cwd", "relative"),
        ("cwd", "/etc"),
        ("form_key", 7),
        ("form_key", "\ud800"),
        ("form_key", "a\0b"),
        ("workload", "\ud800"),
        ("workload", "a\0b"),
        ("name", "\ud800"),
        ("time_limit_s", 10**400),
        ("retry_wait_s", 10**400),
        ("retry_wait_s", -(10**400)),
        ("surprise", 1),
    ],
)
def test_a_value_that_cannot_be_taken_is_400_with_a_sentence_beside_it(client, ada, field, value):
    body = {"command": "x", "cwd": "/tmp", "gpu": "one", field: value}
    answer = post(client, "/api/v1/jobs", body)
    assert answer.status_code == 400, answer.content
    assert error(answer)["fields"][field]
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "null", '{"workers": NaN}', '{"time_limit_s": Infinity}', "[" * 100_000, b"\xff\xfe", "9" * 5000],
    ids=["empty", "cut", "list", "null", "nan", "infinity", "deep", "no utf-8", "huge number"],
)
def test_a_body_that_is_no_json_object_is_400(client, ada, body):
    answer = post(client, "/api/v1/jobs", body)
    assert answer.status_code == 400
    assert error(answer)["code"] == "invalid"


def test_infinity_by_overflow_is_a_field_error(client, ada):
    answer = post(client, "/api/v1/jobs", '{"command": "x", "cwd": "/tmp", "time_limit_s": 1e999}')
    assert answer.status_code == 400
    assert "time_limit_s" in error(answer)["fields"]


def test_what_can_never_fit_is_409_with_what_each_place_gives_at_most(client, ada):
    body = {"command": "x", "cwd": "/tmp", "gpu": "one", "declared_vram": 30 * GIB}
    answer = post(client, "/api/v1/jobs", body)
    assert answer.status_code == 409
    assert error(answer)["code"] == "infeasible"
    assert error(answer)["detail"]["checks"]


def test_every_kind_of_error_has_the_one_shape(client, ada, monkeypatch):
    assert error(Client().get("/api/v1/queue"))["code"] == "not_logged_in"
    assert error(client.get("/api/v1/jobs/99"))["code"] == "not_found"
    assert error(client.get("/api/v2/other"))["code"] == "not_found"
    assert error(client.post("/api"[:4] + "/"))["code"] == "not_found"
    refused = client.delete("/api/v1/queue")
    assert (refused.status_code, error(refused)["code"]) == (405, "method_not_allowed")
    large = post(client, "/api/v1/jobs", {"command": "x" * 3_000_000})
    assert (large.status_code, error(large)["code"]) == (413, "too_large")
    viewer = Client()
    viewer.force_login(a_user("vic", Role.VIEWER))
    assert error(post(viewer, "/api/v1/jobs", {"command": "x"}))["code"] == "role"

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a secret detail")

    monkeypatch.setattr("placement.selectors.wire.queue", broken)
    answer = client.get("/api/v1/queue")
    assert (answer.status_code, error(answer)["code"]) == (500, "internal")
    assert "a secret detail" not in answer.content.decode()


@pytest.mark.parametrize("kind", ["multipart/form-data", "multipart/form-data; boundary=x", FORM, "text/plain"])
@pytest.mark.parametrize("data", ["x", "&".join(f"a{n}=1" for n in range(5000))], ids=["short", "many fields"])
def test_a_body_that_is_no_json_is_answered_in_words_whatever_it_is_called(ada, kind: str, data: str):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    client.get("/")
    headers = {"X-CSRFToken": client.cookies["tidegate_csrf"].value}
    answer = client.post("/api/v1/jobs", data, content_type=kind, headers=headers)
    assert (answer.status_code, error(answer)["code"]) == (400, "invalid")


def test_a_call_without_a_csrf_token_is_refused(ada):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    answer = post(client, "/api/v1/jobs", {"command": "x", "cwd": "/tmp"})
    assert (answer.status_code, error(answer)["code"]) == (403, "csrf")
    assert not Job.objects.exists()
    assert client.get("/api/v1/queue").status_code == 200
    client.get("/")  # a page gives the token
    token = client.cookies["tidegate_csrf"].value
    answer = client.post(
        "/api/v1/jobs",
        json.dumps({"command": "x", "cwd": "/tmp"}),
        content_type="application/json",
        headers={"X-CSRFToken": token},
    )
    assert answer.status_code == 201
