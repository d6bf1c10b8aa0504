"""Memory of a lease that was taken back counts as taken until a reading says that it is gone, and may end its job."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from calibration.domain.samples import RAM
from calibration.models import PoolNow
from placement import inside, snapshots
from placement.domain.ending.outcomes import Evidence, decide_outcome
from placement.domain.world.reservations import booked_room
from placement.domain.world.snapshot import Running
from placement.models import Device, InsideRequest, Job, Workload
from placement.services import admission, holding, lifecycle, reserving
from tests.integration.asking import asks, cycle, on_gpu1
from tests.integration.hardware_box import Box, Card, boxed, job_on
from tests.integration.loop_here import MIB
from tests.integration.rows import GIB, UUIDS, a_job, a_running, a_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("an_account_for_everybody")]
LET = 6000  # MiB


@pytest.fixture
def box(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, db: None) -> Iterator[Box]:
    with boxed(settings, tmp_path, monkeypatch) as made:
        yield made


class Victim:
    """A job on GPU-1 whose lease of 6000 MiB on GPU-0 was taken back, while it uses so much there."""

    def __init__(self, box: Box, uses: int, **more: Any) -> None:
        self.box, self.gpu0 = box, Card("GPU-0")
        self.uses(uses)
        self.job = job_on(box, "GPU-1", 900, {"GPU-1": 4000 * MIB, RAM: GIB}, **more)
        self.look()
        self.row = asks(self.job, LET / 1024, device_id=0)
        assert admission.run()
        self.look()
        holding.revoke(self.row, "olga", 30)

    def uses(self, size: int, pid: int | None = 900) -> None:
        self.gpu0.compute, self.gpu0.used = [(pid, size)] if size else [], max(0, size)

    def look(self) -> Running | None:
        """Look once; return what the job is taken to use without holding it."""
        snapshot = self.box.look(self.gpu0, Card("GPU-1", compute=[(900, 100)], used=100))
        self.job.refresh_from_db()
        if hasattr(self, "row"):
            self.row.refresh_from_db()
        self.booked = booked_room(snapshot, snapshot.nodes[0].devices[0].pool).leased
        return next((r for r in snapshot.running if r.unheld), None)

    def time_is_over(self) -> None:
        InsideRequest.objects.filter(pk=self.row.pk).update(revoke_at=timezone.now() - timedelta(seconds=1))


def test_what_is_still_measured_stays_booked_and_is_told_until_it_is_gone(box: Box, client: Client) -> None:
    at = Victim(box, LET)
    assert at.look() is None
    assert at.booked == LET * MIB
    at.time_is_over()
    at.look()
    assert (at.row.state, at.row.leaving, inside.leases()) == ("revoked", True, [])

    at.look()
    left = at.look()
    assert left is not None
    assert (left.job, left.devices, at.booked) == (at.job.pk, ("GPU-0",), LET * MIB)
    assert at.job.charges["GPU-0"]["held"] == LET * MIB
    assert any("uses 5.9 GiB on gpu0, which it does not lease" in flag for flag in at.job.flags)
    client.force_login(at.job.user)
    page = client.get(f"/jobs/{at.job.pk}").content.decode()
    assert "Still measured: 5.9 GiB on gpu0. That counts as taken until it is gone." in page
    assert "no lease there: what it uses counts as taken until it is gone" in page
    assert "5.9 GiB, holds nothing" in client.get("/devices/testnode/GPU-0").content.decode()
    told = client.get(f"/api/v1/jobs/{at.job.pk}/requests").json()["requests"]
    assert told[0]["still_measured"].startswith("Still measured")
    assert at.job.stop_requested_at is None

    at.uses(0)
    at.look()
    assert at.look() is None
    assert (at.row.leaving, at.booked, "GPU-0" in at.job.charges) == (False, 0, False)
    assert "Still measured" not in client.get(f"/jobs/{at.job.pk}").content.decode()


def test_a_part_that_is_left_counts_as_that_part(box: Box) -> None:
    at = Victim(box, LET)
    at.time_is_over()
    at.look()
    at.uses(1000)
    at.look()
    assert at.booked == 1000 * MIB


@pytest.mark.parametrize(
    ("left", "ends"),
    [(LET, True), (300, False), (0, False), (-1, False)],
    ids=["all of it", "a context", "nothing", "the driver does not say"],
)
def test_a_workload_can_have_its_jobs_end_for_it(box: Box, left: int, ends: bool) -> None:
    at = Victim(box, LET, workload=Workload.objects.create(name="w", command="true", revoked_ends=True))
    at.look()
    assert at.job.stop_requested_at is None, "its time is not over"
    at.time_is_over()
    at.uses(LET if left < 0 else left)
    if left < 0:
        at.gpu0.compute = [(900, 0)]
    at.look()
    assert at.job.stop_requested_at is None, "it is told first"
    at.look()
    assert (at.job.stop_requested_at is not None) is ends
    if ends:
        assert at.job.stop_reason == "revoked"
        said = at.job.evidence["revoked"]["sentence"]
        assert said.startswith("Ended: it kept 5.9 GiB on gpu0 of what was taken back")
        verdict = decide_outcome(Evidence(signal=15, stopped_by="revoked", requested="revoked", said=said))
        assert (verdict.outcome.value, verdict.sentence) == ("cancelled", said)


def test_a_job_that_has_ended_leaves_nothing_to_judge(box: Box) -> None:
    at = Victim(box, LET)
    at.time_is_over()
    at.look()
    Job.objects.filter(pk=at.job.pk).update(state="finished", outcome="completed")
    lifecycle.release(at.job)
    at.row.refresh_from_db()
    assert at.row.leaving is False


def test_whoever_wants_a_device_alone_waits_for_what_is_left_there() -> None:
    job = on_gpu1()
    Job.objects.filter(pk=job.pk).update(used={UUIDS[0]: GIB, **job.used})
    newcomer = a_job(a_user("bob"), declared_vram=1, declared_ram=GIB, device_wanted=UUIDS[0], exclusive="device")
    admission.run()
    newcomer.refresh_from_db()
    assert (newcomer.state, newcomer.code) == ("queued", "exclusive_device")
    assert f"#{job.pk}" in newcomer.headline


@pytest.mark.parametrize("more", [{"exclusive": True}, {"exclusive": True, "device_id": None, "max_devices": 2}, {}])
def test_what_stays_of_a_job_s_own_context_does_not_keep_it_out_for_ever(box: Box, more: dict[str, Any]) -> None:
    """A context stays as long as its process, and a job that runs step after step asks for the device anew."""
    at = Victim(box, LET)
    at.time_is_over()
    at.uses(300)
    at.look()
    Device.objects.filter(uuid="GPU-0").update(declared=8 * GIB)
    newcomer = a_job(a_user("bob"), declared_vram=1, declared_ram=GIB, device_wanted="GPU-0", exclusive="device")
    again = asks(at.job, 8, "again", **{"device_id": 0, **more})
    assert cycle(again).state == "granted", again.said
    newcomer.refresh_from_db()
    assert newcomer.state == "queued", "others wait for it"


def test_what_a_job_uses_on_a_device_alone_keeps_others_out_while_it_asks_for_it(box: Box) -> None:
    at = Victim(box, LET)
    at.time_is_over()
    at.look()
    newcomer = a_job(a_user("bob"), declared_vram=1, declared_ram=GIB, device_wanted="GPU-0", exclusive="device")
    again = asks(at.job, 20, "again", device_id=0)
    assert cycle(again).code == "waits_for_itself", "what it uses is measured"
    newcomer.refresh_from_db()
    assert (newcomer.state, newcomer.code) == ("queued", "exclusive_device")


@pytest.mark.parametrize("more", [{}, {"exclusive": True}, {"min_devices": 1, "max_devices": 2}])
def test_a_step_that_runs_again_is_not_refused_for_what_was_measured_before_it_let_go(more: dict[str, Any]) -> None:
    """It asks within the second; the newest reading is from before."""
    job = on_gpu1()
    told = more if "max_devices" in more else {"device_id": 0, **more}
    first = cycle(asks(job, 20, **told))
    Job.objects.filter(pk=job.pk).update(used={UUIDS[0]: 20 * GIB})
    read = PoolNow.objects.filter(pool=UUIDS[0])
    read.update(used=20 * GIB, free=4 * GIB)
    reserving.release(job, first.pk)
    (left,) = [r for r in snapshots.take().running if r.unheld]
    assert left.charges[UUIDS[0]].held == 20 * GIB
    again = cycle(asks(job, 20, "again", **told))
    assert again.state == "waiting"
    Job.objects.filter(pk=job.pk).update(used={UUIDS[0]: 0})
    read.update(used=0, free=24 * GIB)
    assert cycle(again).state == "granted"


def test_what_a_job_has_just_let_go_of_its_own_device_does_not_refuse_it_either() -> None:
    job = on_gpu1()
    first = cycle(asks(job, 10, device_id=1))
    Job.objects.filter(pk=job.pk).update(used={UUIDS[1]: 22 * GIB})
    reserving.release(job, first.pk)
    assert asks(job, 10, "again", device_id=1).state == "waiting"


def test_memory_that_shares_the_node_s_is_not_booked_twice() -> None:
    job = a_running(a_user("ada"), charges={RAM: {"granted": GIB, "held": GIB}}, used={UUIDS[1]: GIB, UUIDS[0]: GIB})
    assert inside.mirrored(job, {}, {UUIDS[0]}).keys() == {RAM}
