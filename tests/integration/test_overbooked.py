"""A declaration lowered below what is leased: who runs goes on, nothing new starts, and pages say by how much."""

from __future__ import annotations

import html
import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from calibration import clock
from calibration.models import PoolNow
from placement import snapshots
from placement.domain.planning.plan import plan
from placement.models import Device, InsideRequest, Job, Node, Role
from placement.services import admission, cycle_row, nodes, reserving
from placement.services.reserving import Call
from tests.integration.rows import GIB, UUIDS, a_job, a_machine, a_running, a_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("an_account_for_everybody")]


@pytest.fixture
def job() -> Job:
    """A job that holds 13 GiB of gpu1, of which 11 are declared from now on."""
    a_machine()
    cycle_row.ensure()
    found = a_running(a_user("ada"), started_clock=clock.now(), admitted_clock=clock.now())
    admin = a_user("root", Role.ADMIN)
    nodes.edit_device(admin, Device.objects.get(uuid=UUIDS[1]).pk, {"declared": 11 * GIB})
    return found


def asks(job: Job, gib: int, key: str = "k") -> InsideRequest:
    row, _ = reserving.ask(job, Call(key, {"group_bytes": gib * GIB or 1, "device_id": 1}, {}))
    return row


def test_nothing_new_is_granted_and_who_runs_goes_on(job: Job) -> None:
    fields = {"gpu": "one", "declared_ram": GIB, "device_wanted": UUIDS[1]}
    waits = a_job(a_user("bob"), declared_vram=1, **fields)
    other = a_running(a_user("cora"), device="", gpu="none", charges={}, used={}, started_clock=clock.now())
    row = asks(other, 0)
    assert asks(job, 0).code == "waits_for_itself"
    admission.run()
    for one in (waits, row, job):
        one.refresh_from_db()
    assert (waits.state, waits.code) == ("queued", "booked")
    assert (row.state, row.code) == ("waiting", "booked")
    assert job.state == "running"
    assert plan(snapshots.take()).grants == {}

    Device.objects.filter(uuid=UUIDS[1]).update(declared=24 * GIB)
    admission.run()
    row.refresh_from_db()
    assert row.state == "granted"


@pytest.mark.parametrize(("used", "reserved"), [(912, None), (8, 904), (103, None)])
def test_alone_is_decided_by_leases_not_by_bytes_for_a_running_job_too(used: int, reserved: int | None) -> None:
    """What the driver keeps on an empty card, told apart or not, keeps nobody from having it alone."""
    a_machine()
    cycle_row.ensure()
    mib = 1 << 20
    PoolNow.objects.filter(pool=UUIDS[0]).update(
        used=used * mib, free=24 * GIB - (used + (reserved or 0)) * mib, reserved=reserved and reserved * mib
    )
    job = a_running(a_user("ada"), device="", gpu="none", charges={}, used={}, started_clock=clock.now())
    told = {"group_bytes": 22000 * mib, "device_id": 0, "exclusive": True}
    row, _ = reserving.ask(job, Call("k", told, {}))
    admission.run()
    row.refresh_from_db()
    assert row.state == "granted"


def test_pages_say_by_how_much(job: Job, client: Client) -> None:
    client.force_login(a_user("eve", Role.VIEWER))
    for page in ("/", f"/devices/atlas/{UUIDS[1]}"):
        assert "overbooked by 2.0 GiB" in client.get(page).content.decode(), page
    Node.objects.update(ram_declared=3 * GIB)
    assert "overbooked by 1.0 GiB" in client.get("/").content.decode()


def test_a_page_and_the_api_refuse_in_the_same_words_and_round_a_capacity_down(job: Job, client: Client) -> None:
    device = Device.objects.get(uuid=UUIDS[0])
    client.force_login(User.objects.get(username="root"))
    name, where = f"device-{device.pk}", f"/declarations/device/{device.pk}/edit"
    page = client.get(f"/devices/atlas/{UUIDS[0]}").content.decode()
    seen = re.search(rf'name="{name}-seen" value="([^"]*)"', page)
    assert seen is not None
    form = {f"{name}-seen": html.unescape(seen[1]), f"{name}-name": device.name}
    told = "A capacity of 0 bytes is none: it is 1 byte or more. To keep everybody away, drain it."

    refused = client.post(where, {**form, f"{name}-declared": "0 GB"}, follow=True)
    assert told in refused.content.decode()
    answer = client.patch(f"/api/v1/devices/{device.pk}", {"declared": "0 GB"}, content_type="application/json")
    assert answer.status_code == 400
    assert told in answer.content.decode()

    client.post(where, {**form, f"{name}-declared": "0.3333333333333333 GB"})
    device.refresh_from_db()
    assert device.declared == 333_333_333
    third = {"declared": "0.6666666666666667 GB"}
    client.patch(f"/api/v1/devices/{device.pk}", third, content_type="application/json")
    device.refresh_from_db()
    assert device.declared == 666_666_666
