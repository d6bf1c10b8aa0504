"""What a workload says of devices: typed, stored, given back as text, and what a submission of it starts from."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from calibration.domain import keys
from placement.domain.submitting import workloads as domain
from placement.models import Device, Job, Node, Role, Workload
from placement.services import workloads as service
from tests.integration.rows import GIB, UUIDS, a_machine, a_user
from tests.integration.test_workload_forms import sent

pytestmark = pytest.mark.django_db
HERE = f"/workloads/{keys.named('train')}"
GROUP = {
    "gpu": "group", "min_devices": "2", "max_devices": "", "memory": "exact", "group_memory": "6 GiB", "uneven": "on",
}  # fmt: skip
KEPT = {"min_devices": 2, "max_devices": 2, "memory": "exact", "group_memory": 6 * GIB, "even": False}


@pytest.fixture
def ada(client: Client) -> User:
    a_machine()
    user = a_user("ada", Role.OPERATOR)
    client.force_login(user)
    return user


def submitted(client: Client, **said: Any) -> Any:
    sent = {"workload": "train", "cwd": "/tmp", "declared_ram": "1 GiB", **said}
    answer = client.post("/api/v1/jobs", json.dumps(sent), content_type="application/json")
    return Job.objects.get(pk=answer.json()["job"]["id"]) if answer.status_code < 300 else answer.json()


def test_a_group_goes_from_the_form_to_the_row_the_text_and_back(client: Client, ada: User) -> None:
    client.post("/workloads/define", sent(**GROUP, prefer_max="", device=UUIDS[0]))
    row = Workload.objects.get()
    assert (row.gpu, row.placement) == ("group", KEPT)
    text = client.get(f"{HERE}/toml").content.decode()
    assert domain.parse(text) == service.definition_of(row)
    form = client.get(f"{HERE}/edit").context["form"]
    assert (form["gpu"].value(), form["group_memory"].value(), form["uneven"].value()) == ("group", "6.0 GiB", True)
    assert "a group of 2 devices, 6.0 GiB reserved of all together, divided by their room" in (
        client.get(HERE).content.decode()
    )


def test_what_no_submission_could_say_is_refused_beside_its_field(client: Client, ada: User) -> None:
    answer = client.post("/workloads/define", sent(**{**GROUP, "group_memory": ""}))
    assert answer.status_code == 422
    assert "Say how much is to be reserved exactly" in answer.content.decode()
    wrong = client.post("/workloads/define", sent(**{**GROUP, "min_devices": "3", "max_devices": "2"}))
    assert "A group of at least 3 devices cannot have 2 at most." in wrong.content.decode()
    assert not Workload.objects.exists()


def test_the_form_starts_from_it_whatever_ran_last(client: Client, ada: User) -> None:
    client.post("/workloads/define", sent(**GROUP))
    assert submitted(client, gpu="one").gpu == "one"
    form = client.get("/submit?workload=train").context["form"]
    first = {n: form[n].value() for n in ("gpu", "min_devices", "max_devices", "memory", "group_memory", "uneven")}
    assert first == {
        "gpu": "group", "min_devices": "2", "max_devices": "2", "memory": "exact", "group_memory": "6.0 GiB",
        "uneven": True,
    }  # fmt: skip
    filled = json.loads(client.get("/submit/workload?workload=train").headers["HX-Trigger"])["prefill"]
    assert (filled["memory"], filled["uneven"], filled["max_devices"]) == ("exact", "True", "2")


def test_a_device_that_is_not_there_any_more_is_still_asked_for(client: Client, ada: User) -> None:
    service.define(ada, 'name = "train"\ncommand = "true"\ngpu = "one"\ndevice = "GPU-gone"\ndevice_kind = "tpu"\n')
    form = client.get("/submit?workload=train").context["form"]
    assert (form["device"].value(), form["device_kind"].value()) == ("GPU-gone", "tpu")
    assert "GPU-gone" in str(form["device"])
    assert "tpu" in str(form["device_kind"])


def test_over_the_api_a_submission_may_say_otherwise(client: Client, ada: User) -> None:
    client.post("/workloads/define", sent(**GROUP))
    asked = submitted(client).request()
    assert (asked.gpu, asked.min_devices, asked.group_memory, asked.even) == ("group", 2, 6 * GIB, False)
    assert submitted(client, min_devices=1).request().max_devices == 1
    each = submitted(client, per_device_memory="4 GiB").request()
    assert (each.per_device_memory, each.group_memory, each.even) == (4 * GIB, None, True)
    assert not submitted(client, memory="auto").request().exact
    assert submitted(client, gpu="none").request().gpu == "none"


def test_a_node_that_a_submission_says_keeps_the_workloads_device_where_that_node_has_it(
    client: Client, ada: User
) -> None:
    service.define(ada, 'name = "train"\ncommand = "true"\ngpu = "one"\ndevice = "gpu1"\n')
    here, there = Node.objects.get().name, Node.objects.create(name="other")
    assert submitted(client, node=here, declared_vram="1 GiB").device_wanted == UUIDS[1]
    said = submitted(client, node="other")["error"]["fields"]
    assert said == {
        "node": f"train asks for gpu1, which is on {here} and not on other: say a device of other, too, or leave the "
        "node out."
    }
    assert "gpu1 is on" in submitted(client, node="other", device="GPU1")["error"]["fields"]["device"]
    Device.objects.create(uuid="GPU-other", node=there, name="gpu1", index=1, declared=GIB)
    told = client.post(
        "/api/v1/jobs", json.dumps({"workload": "train", "cwd": "/tmp", "node": "nowhere"}), "application/json"
    )
    assert "there is no node nowhere" in told.json()["error"]["message"]


def test_what_is_reserved_exactly_is_told_beside_what_is_learned(client: Client, ada: User) -> None:
    client.post("/workloads/define", sent(**GROUP))
    said = (
        "Its definition asks for a group of 2 devices, 6.0 GiB reserved of all together, divided by their room: that is"
    )
    assert said in client.get(HERE).content.decode()
    here = client.get("/workloads").context["found"].unrun[0].needs[0]
    assert (here.rung, here.amount, here.words) == ("reserved", "6.0 GiB", "device memory of all together")
    pool = client.get(f"/api/v1{HERE}/need").json()["estimate"]["pools"]["vram"]
    assert (pool["need"], pool["basis"]) == (3 * GIB, "declared")  # of each
    client.post("/workloads/define", sent(name="other", gpu="one"))
    assert "that is what a run is charged" not in client.get(f"/workloads/{keys.named('other')}").content.decode()


def test_a_job_that_took_a_group_makes_a_workload_that_does(client: Client, ada: User) -> None:
    client.post("/workloads/define", sent(**GROUP))
    job = submitted(client)
    form = client.get(f"/workloads/define?job={job.pk}").context["form"]
    assert (form["gpu"].value(), form["min_devices"].value(), form["group_memory"].value()) == ("group", "2", "6 GiB")
