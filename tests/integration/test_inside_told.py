"""What pages, the API and the tick's row of a job tell of what it asked for while it ran."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone

from placement import inside, snapshots
from placement.models import AuditEntry, InsideRequest, Job, Lease, Role
from placement.selectors import devices, held, rows
from placement.selectors.asked import Asked
from tests.integration.asking import asks, cycle, on_gpu1
from tests.integration.rows import GIB, UUIDS, a_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("an_account_for_everybody")]


@pytest.fixture
def job() -> Job:
    """A job on gpu1 with 13 of 24 GiB."""
    return on_gpu1()


def test_the_tick_s_row_shows_what_was_granted_since(job: Job) -> None:
    cycle(asks(job, 6, "a", device_id=0)), cycle(asks(job, 2, "b", device_id=1))
    lent = inside.promised(inside.leases())[job.pk]
    charges = inside.mirrored(job, lent)
    assert charges[UUIDS[0]]["granted"] == 6 * GIB
    assert charges[UUIDS[0]]["basis"] == inside.BASIS
    assert charges[UUIDS[1]]["held"] == 15 * GIB
    assert charges[UUIDS[1]]["inside"] == 2 * GIB
    job.charges = charges
    assert inside.granted(charges[UUIDS[1]]) == 15 * GIB
    before = [r.charges for r in snapshots.take().running]
    job.save(update_fields=["charges"])
    assert [r.charges for r in snapshots.take().running] == before  # what the row has for pages is not counted twice
    Job.objects.filter(pk=job.pk).update(charges=charges)
    assert {tank.alone for tank in devices.all_tanks(sees_commands=True)} == {None}
    InsideRequest.objects.update(ask={**InsideRequest.objects.first().ask, "exclusive": True})
    job.refresh_from_db()
    inside.brought_up([job])
    job.save(update_fields=["charges"])
    told = {tank.pool: (tank.left, tank.alone) for tank in devices.all_tanks(sees_commands=True)}
    assert told[UUIDS[0]] == ("nothing", job.pk)
    assert told[UUIDS[1]][1] is None  # who had it before shares it with others
    assert inside.mirrored(job, {})[UUIDS[1]]["held"] == 13 * GIB
    assert UUIDS[0] not in inside.mirrored(job, {})


def test_what_was_taken_from_inside_is_in_its_row_and_has_a_chart_also_when_it_is_let_go(
    client: Client, job: Job
) -> None:
    client.force_login(job.user)
    names = {UUIDS[0]: "gpu0", UUIDS[1]: "gpu1"}
    shown = client.get(f"/jobs/{job.pk}").content.decode()
    assert held.kinds(job, names) == (("device", "Device memory"), ("ram", "RAM"))
    row = cycle(asks(job, 6, "a", device_id=0))
    inside.brought_up([job])
    job.used = {**job.used, UUIDS[0]: 2 * GIB}
    job.save(update_fields=["charges", "used"])
    assert list(Asked(device=UUIDS[0]).only(Job.objects.all(), 0)) == [job]
    line = rows.running(job, names)
    assert line.where == "gpu1 + gpu0"
    assert line.each.replace("\N{NO-BREAK SPACE}", " ") == "gpu0 2.0 of 6.0 GiB, asked for as it ran"
    two = (("device-0", "gpu1"), ("device-1", "gpu0, asked for as it ran,"), ("ram", "RAM"))
    assert held.kinds(job, names) == two
    drawn = held.drawn(job, "device-1")
    assert drawn is not None
    assert (drawn.pool, drawn.levels["charge"], drawn.levels["estimate"]) == (UUIDS[0], 6 * GIB, None)

    (poll,) = re.findall(r'hx-get="(/jobs/\d+/fragment[^"]*)"', shown)
    part = client.get(unescape(poll), headers={"HX-Request": "true"}).content.decode()
    assert 'id="job-charts" hx-swap-oob="true"' in part
    assert f"/jobs/{job.pk}/memory/device-1" in part
    (poll,) = re.findall(r'hx-get="(/jobs/\d+/fragment[^"]*)"', part)
    assert "job-charts" not in client.get(unescape(poll), headers={"HX-Request": "true"}).content.decode()

    Lease.objects.filter(request=row).update(released_at=timezone.now())
    inside.brought_up([job])
    assert held.kinds(job, names) == two
    assert held.drawn(job, "device-1") is not None
    assert rows.running(job, names).where == "gpu1"


def test_the_page_and_the_api_tell_what_a_job_holds_and_asked_for(client: Client, job: Job) -> None:
    olga = a_user("olga", Role.OPERATOR)
    granted, waits = cycle(asks(job, 6, "a", device_id=0)), asks(job, 9, "b", device_id=1)
    flags = inside.waits([job.pk], {UUIDS[1]: "gpu1"})
    assert flags == {job.pk: ["waits for 9.0 GiB on gpu1"]}
    client.force_login(job.user)
    text = client.get(f"/jobs/{job.pk}").content.decode()
    assert "Asked for while it ran" in text
    assert "6.0 GiB on gpu0" in text
    assert "Take it back" not in text
    told = client.get(f"/api/v1/jobs/{job.pk}/requests").json()["requests"]
    assert [(one["id"], one["state"]) for one in told] == [(waits.pk, "waiting"), (granted.pk, "granted")]
    assert client.post(f"/jobs/{job.pk}/requests/{granted.pk}/revoke").status_code == 403

    client.force_login(olga)
    assert "Take it back" in client.get(f"/jobs/{job.pk}").content.decode()
    client.post(f"/jobs/{job.pk}/requests/{granted.pk}/revoke")
    granted.refresh_from_db()
    assert granted.revoke_at is not None
    assert granted.revoked_by == "olga"
    assert "being taken back" in client.get(f"/jobs/{job.pk}").content.decode()
    again = client.post(f"/api/v1/jobs/{job.pk}/requests/{granted.pk}/revoke")
    assert again.status_code == 409
    assert AuditEntry.objects.filter(action="revoke lease").count() == 1


def test_a_cycle_is_told_on_the_page_as_it_was(client: Client, job: Job) -> None:
    row = asks(job, 6, device_id=0)
    link = {"request": row.pk, "job": job.pk, "step": "", "wants": 6 * GIB, "on": ["gpu0"], "waits_for": [],
            "holds": [{"device": "gpu1", "bytes": 13 * GIB, "alone": False}]}  # fmt: skip
    InsideRequest.objects.filter(pk=row.pk).update(
        state="refused", said="It waited in a ring.", reasons={"cycle": {"ring": [row.pk], "links": [link]}}
    )
    client.force_login(job.user)
    text = client.get(f"/jobs/{job.pk}").content.decode()
    assert "held 13.0 GiB on gpu1 and waited for 6.0 GiB on gpu0" in text
