"""What would start a waiting group, in words and by one click, and what is stored of it."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from placement.domain.errors import Refused
from placement.models import AuditEntry, Device, Job
from placement.selectors import remedy
from placement.services import editing
from tests.integration.rows import GIB, UUIDS, a_job, a_machine, a_running, a_user

pytestmark = pytest.mark.django_db


def a_group(**asked: object) -> Job:
    a_machine()
    Device.objects.filter(uuid=UUIDS[1]).update(draining=True)
    usual = {
        "min": 2, "max": 2, "prefer_max": False, "per_device": 4 * GIB, "group": None, "even": True, "kind": None,
        "backend": None,
    }  # fmt: skip
    known = {"declared_ram": GIB, "key_params": '["devices: 2", "a"]'}
    return a_job(a_user("ada"), gpu="group", devices_wanted={**usual, **asked}, **known)


def test_a_group_is_offered_fewer_devices_and_takes_them_by_one_click(client: Client) -> None:
    job = a_group()
    (way,) = [one for one in remedy.ways(job, None, lambda _: "") if one.kind == "edit"]
    assert (way.bold, way.button, way.fields) == ("with 1 device instead of 2", "Take 1 device", (("devices", "1"),))
    assert "fits gpu0 now" in way.rest
    client.force_login(job.user)
    client.post(f"/jobs/{job.pk}/change", dict(way.fields))
    after = Job.objects.get(pk=job.pk)
    assert (after.request().min_devices, after.request().max_devices) == (1, 1)
    assert json.loads(after.key_params) == ["devices: 1", "a"]
    assert AuditEntry.objects.filter(action="change job").exists()


def test_less_is_reserved_over_the_api(client: Client) -> None:
    job = a_group(min=1, per_device=23 * GIB, max=1)
    client.force_login(job.user)
    sent = {"per_device_memory": "8 GiB"}
    answer = client.post(f"/api/v1/jobs/{job.pk}/change", json.dumps(sent), content_type="application/json")
    assert "8.0 GiB reserved of each device instead of 23.0 GiB" in answer.content.decode()
    assert Job.objects.get(pk=job.pk).request().per_device_memory == 8 * GIB


@pytest.mark.parametrize(
    "wanted",
    [
        editing.Wanted(devices=3),
        editing.Wanted(devices=0),
        editing.Wanted(per_device_memory=5 * GIB),
        editing.Wanted(group_memory=GIB),
    ],
)
def test_more_than_before_is_refused(wanted: editing.Wanted) -> None:
    job = a_group()
    with pytest.raises(Refused):
        editing.change(job.user, job.pk, wanted)


def test_a_job_of_one_device_has_no_fewer() -> None:
    a_machine()
    job = a_job(a_user("ada"), declared_vram=GIB, declared_ram=GIB)
    with pytest.raises(Refused):
        editing.change(job.user, job.pk, editing.Wanted(devices=1, per_device_memory=GIB))


def test_who_would_end_frees_nothing_on_devices_where_it_is_not() -> None:
    job = a_group(per_device=12 * GIB)
    Device.objects.update(draining=False)
    a_running(job.user)
    (way,) = [one for one in remedy.ways(job, None, lambda _: "") if one.kind == "ends"]
    assert way.rest == "then gpu0 + gpu1 have room"
