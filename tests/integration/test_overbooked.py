"""A declaration lowered below what is leased: who runs goes on, nothing new starts, and pages say by how much."""

from __future__ import annotations

import pytest
from django.test import Client

from calibration import clock
from placement import snapshots
from placement.domain.plan import plan
from placement.models import Device, InsideRequest, Job, Node, Role
from placement.services import admission, cycle_row, nodes, reserving
from placement.services.reserving import Call
from tests.integration.rows import GIB, UUIDS, a_job, a_machine, a_running, a_user

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _an_account_for_everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placement.services.accounts.problem", lambda user: "")


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


def test_pages_say_by_how_much(job: Job, client: Client) -> None:
    client.force_login(a_user("eve", Role.VIEWER))
    for page in ("/", f"/devices/atlas/{UUIDS[1]}"):
        assert "overbooked by 2.0 GiB" in client.get(page).content.decode(), page
    Node.objects.update(ram_declared=3 * GIB)
    assert "overbooked by 1.0 GiB" in client.get("/").content.decode()
