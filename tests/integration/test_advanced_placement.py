"""Devices asked for in the form, a script or the API: what is stored, what the live answer says, what is refused."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from placement.models import Device, Job, Role
from placement.services import jobs
from tests.integration.rows import GIB, UUIDS, a_job, a_machine, a_pool, a_running, a_user

pytestmark = pytest.mark.django_db
PAIR = {"gpu": "group", "min_devices": "2", "max_devices": ""}
EXACT = {"memory": "exact", "group_memory": "6 GiB"}


@pytest.fixture
def ada(client: Client) -> Any:
    a_machine()
    user = a_user("ada", Role.ADMIN)
    client.force_login(user)
    return user


def form(**fields: str) -> dict[str, str]:
    usual = {"command": "torchrun fit.py", "cwd": "/tmp", "kind": "command", "workers": "1", "form_key": "k"}
    return {**usual, "exclusive": "no", "memory": "auto", "declared_ram": "1 GiB", **fields}


def answer(client: Client, **fields: str) -> str:
    """Return the sentence of the live answer, with its spaces as one each."""
    seen = client.post("/submit/estimate", form(**fields)).content.decode()
    found = re.search(r'id="answer">(.*?)</p>', seen, re.DOTALL)
    assert found, seen
    return unescape(re.sub(r"<[^>]+>|\s+", " ", found[1])).strip()


def errors(client: Client, **fields: str) -> str:
    return unescape(client.post("/submit", form(**fields)).content.decode())


def test_the_live_answer_says_what_each_device_would_give(client: Client, ada: Any) -> None:
    assert answer(client, **PAIR, **EXACT) == "Would get 3.0 GiB on gpu0 and 3.0 GiB on gpu1, with 1.0 GiB of RAM."
    one = answer(client, gpu="one", memory="exact", per_device_memory="5 GiB", device=UUIDS[1])
    assert one == "Would get 5.0 GiB on gpu1, with 1.0 GiB of RAM."
    assert answer(client, gpu="none") == "Would get 1.0 GiB of RAM."
    assert not Job.objects.exists()


def test_the_live_answer_says_what_it_waits_for(client: Client, ada: Any) -> None:
    a_running(ada, node=Device.objects.get(uuid=UUIDS[1]).node.name)
    said = answer(client, **PAIR, memory="exact", per_device_memory="20 GiB")
    assert re.match(r"Waits: needs 20\.0 GiB.*gpu1", said)


def test_the_live_answer_says_that_it_can_never_be_granted_with_the_arithmetic(client: Client, ada: Any) -> None:
    never = answer(client, **PAIR, memory="exact", per_device_memory="25 GiB")
    assert re.match(r"Can never be granted: .*25\.0 GiB", never)
    assert "it needs 3 devices of one node, and there are 2" in answer(client, gpu="group", min_devices="3")
    Device.objects.filter(uuid=UUIDS[1]).update(backend="ROCM")
    none = answer(client, **{**PAIR, "backend": "rocm"})
    assert "it needs 2 ROCM devices of one node, and there is 1" in none


def test_shares_by_room_fill_devices_of_unlike_size(client: Client, ada: Any) -> None:
    node = Device.objects.get(uuid=UUIDS[0]).node.name
    Device.objects.filter(uuid=UUIDS[0]).update(declared=8 * GIB)
    asked = {**PAIR, "memory": "exact", "group_memory": "24 GiB"}
    assert answer(client, **asked).startswith("Can never be granted: ")
    a_pool(node, UUIDS[1], "gpu1", 24 * GIB, 0)
    assert re.match(r"Would get \S+ GiB on gpu1 and \S+ GiB on gpu0, with", answer(client, **asked, uneven="on"))


def test_what_the_form_asks_for_is_what_is_stored_and_comes_back_when_used_again(client: Client, ada: Any) -> None:
    more = {"max_devices": "4", "prefer_max": "on", "uneven": "on", "exclusive": "device", "per_device_memory": "1 GiB"}
    assert client.post("/submit", form(**{**PAIR, **EXACT, **more})).status_code == 302
    job = Job.objects.get()
    asked = {"min": 2, "max": 4, "prefer_max": True, "per_device": GIB, "group": 6 * GIB, "even": False}
    assert job.devices_wanted == {**asked, "kind": None, "backend": None}
    page = client.get(f"/submit?again={job.pk}").content.decode()
    assert re.search(r'value="group"[^>]*checked', page)
    for text in ('name="min_devices" value="2"', 'name="max_devices" value="4"', 'value="6 GiB"', 'value="1 GiB"'):
        assert text in page
    assert re.search(r'<details id="placement" open>', page)
    assert re.search(r'name="uneven"[^>]*checked', page)
    assert re.search(r'<option value="device" selected>', page)
    again = client.get("/submit?command=torchrun+fit.py").content.decode()  # as this command was used last
    assert re.search(r'value="group"[^>]*checked', again)
    assert 'name="max_devices" value="4"' in again


def test_what_does_not_apply_is_left(client: Client, ada: Any) -> None:
    left = {"min_devices": "3", "prefer_max": "on", "group_memory": "9 GiB", "uneven": "on"}
    client.post("/submit", form(gpu="one", device=UUIDS[0], per_device_memory="2 GiB", **left))
    assert Job.objects.get().devices_wanted is None
    client.post("/submit", form(gpu="none", form_key="k2", memory="exact", declared_vram="2 GiB", **left))
    job = Job.objects.latest("pk")
    assert (job.gpu, job.devices_wanted, job.declared_vram) == ("none", None, None)


def test_the_form_and_the_api_refuse_with_the_same_sentence(client: Client, ada: Any) -> None:
    wrong = [
        ({"gpu": "group", "min_devices": 3, "max_devices": 2}, "max_devices"),
        ({"gpu": "one", "memory": "exact"}, "memory"),
        ({"gpu": "group", "min_devices": 2, "memory": "exact", "per_device_memory": "1 GiB", "even": False}, "even"),
    ]
    for fields, field in wrong:
        body = {"command": "true", "cwd": "/tmp", **fields}
        refused = client.post("/api/v1/jobs", json.dumps(body), content_type="application/json")
        assert refused.status_code == 400, refused.content
        sentence = refused.json()["error"]["fields"][field]
        typed = {name: str(value) for name, value in fields.items() if name != "even"}
        page = errors(client, **typed, **({"uneven": "on"} if "even" in fields else {}))
        assert re.search(rf'id="id_{"uneven" if field == "even" else field}_error"><p>{re.escape(sentence)}', page)
    assert not Job.objects.exists()


def test_the_api_gives_the_same_answer_and_takes_the_same_words(client: Client, ada: Any) -> None:
    body = {"command": "true", "cwd": "/tmp", "gpu": "group", "min_devices": 2, "memory": "exact",
            "group_memory": "6 GiB", "declared_ram": "1 GiB", "even": False, "backend": "CUDA"}  # fmt: skip
    seen = client.post("/api/v1/estimate", json.dumps(body), content_type="application/json").json()
    assert seen["answer"].startswith("Would get 3.")
    made = client.post("/api/v1/jobs", json.dumps(body), content_type="application/json").json()["job"]
    assert (made["min_devices"], made["max_devices"], made["even"], made["backend"]) == (2, 2, False, "cuda")
    Job.objects.update(state="finished", outcome="failed")
    again = jobs.retry(ada, made["id"])
    assert again.devices_wanted == Job.objects.get(pk=made["id"]).devices_wanted


def test_a_retry_with_more_reserves_more_of_each_device(client: Client, ada: Any) -> None:
    client.post("/submit", form(**PAIR, **EXACT))
    job = Job.objects.get()
    charges = {uuid: {"granted": 3 * GIB, "held": 3 * GIB, "at_start": 3 * GIB, "cap": 4 * GIB} for uuid in UUIDS}
    evidence = {"memory": "vram", "watchdog": {"next_charge": 5 * GIB}}
    ended = {"state": "finished", "outcome": "cap_exceeded", "evidence": evidence, "charges": charges}
    Job.objects.update(**ended, device=UUIDS[0], more_devices=UUIDS[1], started_at=timezone.now())
    page = client.get(f"/jobs/{job.pk}").content.decode()
    assert "Retry with 5.0 GiB" in page
    client.post(f"/jobs/{job.pk}/retry", {"vram": str(5 * GIB)})
    again = Job.objects.latest("pk")
    assert again.request().shares(2) == (5 * GIB, 5 * GIB)
    assert again.declared_vram is None


def test_a_sweep_of_groups_makes_groups(client: Client, ada: Any) -> None:
    client.post("/submit", form(**PAIR, command="torchrun fit.py {lr}", sweep="lr = 1, 2"))
    assert [job.request().min_devices for job in Job.objects.all()] == [2, 2]


def test_a_script_that_asks_for_several_devices_makes_a_group_of_exactly_so_many(client: Client, ada: Any) -> None:
    text = b"#!/bin/bash\n#SBATCH --gres=gpu:2\ntorchrun fit.py\n"
    head = client.post("/submit/script", {"script": SimpleUploadedFile("fit.sh", text)})
    fields = json.loads(head.headers["HX-Trigger"])["script"]
    assert {name: fields[name] for name in ("gpu", "min_devices", "max_devices")} == {
        "gpu": "group",
        "min_devices": "2",
        "max_devices": "2",
    }
    assert "a group of 2 devices" in head.content.decode()
    client.post("/submit", form(**{name: fields[name] for name in ("command", "gpu", "min_devices", "max_devices")}))
    assert Job.objects.get().request().max_devices == 2


def test_the_form_asks_for_a_backend_only_where_there_is_a_choice(client: Client, ada: Any) -> None:
    assert 'name="backend"' not in client.get("/submit").content.decode()
    Device.objects.filter(uuid=UUIDS[1]).update(backend="ROCM")
    page = client.get("/submit").content.decode()
    assert '<option value="rocm">ROCM</option>' in page
    assert 'name="device_kind"' not in page


def test_a_line_that_was_run_on_a_group_runs_on_one_again(client: Client, ada: Any) -> None:
    pair = {"min": 2, "max": 2, "prefer_max": False, "per_device": None, "group": None}
    a_job(ada, command="torchrun fit.py", gpu="group", devices_wanted=pair)
    client.post("/submit", {"quick": "1", "command": "torchrun fit.py", "form_key": "q"})
    assert Job.objects.latest("pk").request().min_devices == 2


def test_while_somebody_types_nothing_is_said_of_what_was_not_submitted(client: Client, ada: Any) -> None:
    seen = client.post("/submit/estimate", form(gpu="one", memory="exact")).content.decode()
    assert "Say how much is to be reserved exactly" in seen
    assert "Nothing was submitted" not in seen
