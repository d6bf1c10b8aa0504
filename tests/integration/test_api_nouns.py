"""What can be done by the API noun by noun, and that answers are what their shapes say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from placement.api.shapes import admin as admin_shapes
from placement.api.shapes.attribution import AttributionList
from placement.api.shapes.device import DeviceAnswer, NodeList, Series
from placement.api.shapes.job import History, JobAnswer, JobList
from placement.api.shapes.log import Hit, LogPiece
from placement.api.shapes.notice import NoticeList, SettingsSaid
from placement.api.shapes.queue import Queue
from placement.api.shapes.workload import WorkloadAnswer, WorkloadList
from placement.models import AuditEntry, Device, Job, KnobOverride, Member, Role, Workload
from tests.integration.rows import GIB, a_finished, a_job, a_machine, a_running, a_user

pytestmark = pytest.mark.django_db


JSON = {"content_type": "application/json"}


class Caller:
    """Somebody with a session."""

    def __init__(self, name: str, role: Role) -> None:
        self.user = a_user(name, role)
        self.client = Client()
        self.client.force_login(self.user)

    def __call__(self, method: str, path: str, body: object = None, status: int = 200) -> Any:
        data = {} if method == "get" else {"data": json.dumps(body) if body is not None else "", **JSON}
        answer = getattr(self.client, method)(f"/api/v1/{path}", **data)
        assert answer.status_code == status, answer.content
        return answer.json()


@pytest.fixture
def admin() -> Caller:
    a_machine()
    return Caller("root", Role.ADMIN)


@pytest.fixture
def ada() -> Caller:
    return Caller("ada", Role.SUBMITTER)


def test_what_waits_comes_by_the_page_in_the_order_of_the_queue(admin: Caller):
    jobs = [a_job(admin.user, priority=priority).pk for priority in (0, -5, 0, 3, 0)]
    order = [jobs[3], jobs[0], jobs[2], jobs[4], jobs[1]]
    seen, after, pages = [], "", 0
    while True:
        page = admin("get", f"queue?limit=2&after={after}")
        Queue.model_validate(page)
        assert page["waiting"] == 5
        seen += [job["id"] for job in page["queued"]]
        pages, after = pages + 1, page["next"]
        if after is None:
            break
    assert (seen, pages) == (order, 3)
    assert [job["id"] for job in admin("get", "queue?all=true")["queued"]] == order
    admin("get", "queue?after=x", status=400)
    admin("get", "queue?limit=0", status=400)


def test_a_head_is_answered_as_a_get_without_its_body(admin: Caller):
    answer = admin.client.head("/api/v1/queue")
    assert (answer.status_code, answer.content) == (200, b"")
    assert admin.client.options("/api/v1/queue").status_code == 405


@pytest.mark.parametrize("path", ["v1/", "v2/queue", "v1/jobs/x", "v1/jobs/1%0A2/log", "v1/jobs/-1", "v1/%00"])
def test_an_address_that_is_none_is_told_as_json(client: Client, path: str):
    answer = client.get(f"/api/{path}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


def test_jobs_are_listed_by_key_and_filter(admin: Caller, ada: Caller):
    ended = [a_finished(ada.user, "failed").pk for _ in range(52)]
    waits = a_job(admin.user, name="other").pk
    page = ada("get", "jobs?outcome=failed")
    JobList.model_validate(page)
    assert [job["id"] for job in page["jobs"]] == ended[:1:-1]
    rest = ada("get", f"jobs?outcome=failed&before={page['older']}")
    assert [job["id"] for job in rest["jobs"]] == ended[1::-1]
    assert [job["id"] for job in ada("get", "jobs?q=oth")["jobs"]] == [waits]
    assert ada("get", "jobs?whose=mine&outcome=queued")["jobs"] == []
    ada("get", "jobs?outcome=nonsense", status=400)


def test_many_jobs_take_one_act_each_by_itself(admin: Caller, ada: Caller):
    own, others = a_job(ada.user).pk, a_job(admin.user).pk
    said = ada("post", "jobs/bulk", {"verb": "cancel", "jobs": [own, str(others), "a9"]})
    assert said["count"] == 1
    assert [one["count"] for one in said["results"]] == [1, 0, 0]
    assert "root's" in said["results"][1]["sentence"]
    ada("post", "jobs/bulk", {"verb": "cancel", "jobs": []}, status=400)
    ada("post", "jobs/bulk", {"verb": "explode", "jobs": [own]}, status=400)


def test_a_waiting_job_is_held_moved_made_smaller_and_run_again(admin: Caller, ada: Caller):
    job = a_job(ada.user, workers=8).pk
    assert ada("post", f"jobs/{job}/hold", {"why": "no data"})["job"]["held_why"] == "no data"
    assert ada("post", f"jobs/{job}/release")["job"]["held_by"] is None
    assert ada("post", f"jobs/{job}/priority", {"priority": -3})["job"]["priority"] == -3
    ada("post", f"jobs/{job}/priority", {"priority": 3}, status=403)
    assert ada("post", f"jobs/{job}/change", {"workers": 2})["job"]["workers"] == 2
    ada("post", f"jobs/{job}/change", {"workers": 4}, status=409)
    ada("post", f"jobs/{job}/retry", status=409)
    JobAnswer.model_validate(ada("get", f"jobs/{job}"))
    History.model_validate(ada("get", f"jobs/{job}/history"))


def test_a_log_is_read_in_stretches_and_searched(ada: Caller, tmp_path: Any):
    (tmp_path / "stdout.log").write_text("".join(f"line {n}\n" for n in range(20_000)) + "größer\nlast word")
    job = a_running(ada.user, run_dir=str(tmp_path)).pk
    end = LogPiece.model_validate(ada("get", f"jobs/{job}/log"))
    assert end.text.endswith("größer\nlast word")
    assert end.end == end.size
    text, at = "", 0
    while at < end.size:
        piece = LogPiece.model_validate(ada("get", f"jobs/{job}/log?offset={at}"))
        assert piece.end > at
        text, at = text + piece.text, piece.end
    assert text == (tmp_path / "stdout.log").read_text()
    hit = Hit.model_validate(ada("get", f"jobs/{job}/log/search?q=LAST"))
    assert hit.total == 1
    assert ada("get", f"jobs/{job}/log?offset={hit.at}")["text"].startswith("last word")
    whole = ada.client.get(f"/api/v1/jobs/{job}/log.txt")
    assert b"".join(whole.streaming_content).decode() == text
    assert ada("get", f"jobs/{job}/log?stream=stderr")["gone"]
    stranger = Caller("eve", Role.SUBMITTER)
    for path in ("log", "log/search?q=x", "log.txt", "learned"):
        stranger("get", f"jobs/{job}/{path}", status=403)


def test_a_device_is_declared_with_a_preview_and_nobody_is_overwritten(admin: Caller, ada: Caller):
    device = Device.objects.order_by("pk").first()
    path = f"devices/{device.pk}"
    asked = {"declared": "20 GiB", "expected": {"declared": 24 * GIB}}
    assert admin("post", f"{path}/preview", asked)["effects"]
    device.refresh_from_db()
    assert device.declared == 24 * GIB
    DeviceAnswer.model_validate({"device": admin("patch", path, asked)["device"]})
    device.refresh_from_db()
    assert device.declared == 20 * GIB
    assert "changed meanwhile" in admin("patch", path, asked, status=409)["error"]["message"]
    ada("patch", path, asked, status=403)
    assert admin("post", f"{path}/hold", {"why": "dust", "hours": 1})["device"]["held"]["why"] == "dust"
    assert admin("post", f"{path}/release")["device"]["held"] is None
    assert admin("post", f"{path}/drain", {"on": True})["device"]["draining"] is True
    admin("patch", path, {"declared": None}, status=400)
    NodeList.model_validate(ada("get", "nodes"))
    Series.model_validate(ada("get", f"{path}/series"))
    AttributionList.model_validate(ada("get", "attribution"))


def test_people_are_added_changed_limited_and_kept_out(admin: Caller, ada: Caller):
    made = admin("post", "people", {"name": "bob", "role": "viewer"}, status=201)
    assert "/login/link/" in made["link"]
    bob = made["person"]["id"]
    assert admin("patch", f"people/{bob}", {"role": "operator"})["person"]["role"] == "operator"
    refused = admin("patch", f"people/{bob}", {"role": "viewer", "account": "no-such-account"}, status=400)
    assert "account" in refused["error"]["fields"]
    assert Member.objects.get(user_id=bob).role == "operator"  # all of it or nothing
    admin("put", f"people/{bob}/quota", {"jobs": 2, "vram": "8 GiB"})
    assert Member.objects.get(user_id=bob).quota_vram == 8 * GIB
    assert admin("patch", f"people/{bob}", {"active": False})["person"]["active"] is False
    admin_shapes.PersonList.model_validate(admin("get", "people"))
    for method, path in (("get", "people"), ("post", "people"), ("get", "audit"), ("get", "knobs")):
        ada(method, path, {"name": "x", "role": "admin"} if method == "post" else None, status=403)


def test_knobs_are_turned_put_back_and_on_record(admin: Caller):
    knobs = admin_shapes.KnobList.model_validate(admin("get", "knobs")).knobs
    quota = next(knob for knob in knobs if knob.name == "quota_jobs")
    assert admin("put", "knobs/quota_jobs", {"value": 7})["knob"]["value"] == 7
    assert admin("put", "knobs/quota_jobs", {"value": "many"}, status=400)["error"]["fields"]["value"]
    assert [knob["name"] for knob in admin("get", "knobs?turned=true")["knobs"]] == ["quota_jobs"]
    assert admin("delete", "knobs/quota_jobs")["knob"]["value"] == quota.default
    admin("put", "knobs/none_of_ours", {"value": 1}, status=404)
    assert not KnobOverride.objects.exists()
    entries = admin_shapes.EntryList.model_validate(admin("get", "audit?action=turn_knob")).entries
    assert [entry.who for entry in entries] == ["root", "root"]


def test_a_workload_is_defined_looked_at_and_removed(admin: Caller, ada: Caller):
    toml = 'name = "train"\ncommand = "python train.py --size {size}"\n[parameters.size]\ndefault = "1"\n'
    said = admin("post", "workloads", {"toml": toml})
    assert Workload.objects.get().name == "train"
    for ident in (said["id"], "train"):
        WorkloadAnswer.model_validate(ada("get", f"workloads/{ident}"))
    WorkloadList.model_validate(ada("get", "workloads"))
    assert "train.py" in ada.client.get("/api/v1/workloads/train/definition").content.decode()
    assert ada("get", "workloads/train/need?workers=2")["estimate"]["pools"]
    assert admin("post", "workloads", {"toml": "name = "}, status=400)["error"]["fields"]["toml"]
    ada("post", "workloads", {"toml": toml}, status=403)
    admin("post", "workloads/train/pin", {"kind": "ram", "amount": "2 GiB"})
    assert AuditEntry.objects.get(action="pin").detail["bytes"] == 2 * GIB
    admin("delete", "workloads/train")
    ada("get", "workloads/nothing", status=404)


def test_a_sweep_is_asked_about_and_submitted(admin: Caller, ada: Caller):
    body = {"command": "python t.py --lr {lr} --n {n}", "cwd": "/tmp", "sweep": {"lr": [0.1, 0.01], "n": "1..3"}}
    assert ada("post", "estimate", body)["sweep"]["count"] == 6
    made = ada("post", "jobs", body, status=201)["job"]
    assert made["array"]["size"] == 6
    assert Job.objects.filter(array_id=made["array"]["id"]).count() == 6
    assert "sweep" in ada("post", "jobs", {**body, "sweep": {"lr": []}}, status=400)["error"]["fields"]


def test_notices_are_read_and_chosen(ada: Caller):
    NoticeList.model_validate(ada("get", "notices"))
    said = ada("put", "notices/settings", {"kinds": ["failed"], "waited_min": 3})
    assert SettingsSaid.model_validate(said).settings.kinds == ["failed"]
    ada("put", "notices/settings", {"kinds": ["nonsense"], "waited_min": 3}, status=400)
    refused = ada("post", "notices/hooks", {"address": "file:///etc/passwd", "kinds": ["failed"]}, status=400)
    assert "address" in refused["error"]["fields"]
    ada("delete", "notices/hooks/99", status=404)
