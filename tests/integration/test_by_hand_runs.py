"""Jobs on devices declared by hand: given out by the bookings, seen in the environment, shown as not measured."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from calibration import clock
from calibration.domain.windows import Window
from placement import snapshots
from placement.models import Device, Job, Node, Role, Workload
from placement.selectors.submit import preselect
from placement.services import admission, cycle_row, device_environment, nodes, reserving, taking
from placement.services.capping import stand
from placement.services.reserving import Call
from placement.services.settling import settled
from tests.integration.asking import HERE
from tests.integration.hand import asks, send, tpu, words
from tests.integration.rows import GIB, UUIDS, a_job, a_machine, a_running, a_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("an_account_for_everybody")]


@pytest.fixture
def ann(client: Client) -> Any:
    cycle_row.ensure()
    user = a_user("ann", Role.ADMIN)
    client.force_login(user)
    return user


@pytest.fixture
def node() -> Node:
    return a_machine()


class TestRunning:
    def test_it_is_booked_for_good_and_nothing_is_learned_of_it(self, ann: Any, node: Node) -> None:
        row = tpu(ann, node)
        job = asks(ann, declared_vram=4 * GIB)
        assert (job.device, job.state) == (row.uuid, "admitted")
        assert "by the bookings alone: nothing measures it." in job.headline
        charge = job.charges[row.uuid]
        assert (charge["unread"], charge["settled"], charge["cap"], charge["basis"]) == (True, True, None, "declared")
        assert not snapshots.take().running[0].cold
        _, knobs = snapshots.knobs_now()
        later = settled(job, Window(started_at=0.0), 9999.0, knobs, 0)
        assert later[row.uuid]["held"] == 4 * GIB
        assert stand(job)["kind"] == "unread"

    def test_who_says_more_than_is_known_of_it_is_booked_with_that(self, ann: Any, node: Node) -> None:
        row = tpu(ann, node)
        job = asks(ann, workload=Workload.objects.create(name="w", hint_vram=2 * GIB), declared_vram=4 * GIB)
        assert (job.charges[row.uuid]["granted"], job.charges[row.uuid]["basis"]) == (4 * GIB, "declared")

    def test_without_bytes_it_is_refused_in_words_and_alone_it_has_the_whole(
        self, client: Client, ann: Any, node: Node
    ) -> None:
        row = tpu(ann, node)
        said = {"command": "python t.py", "cwd": "/tmp", "gpu": "one", "device_kind": "tpu", "declared_ram": GIB}
        told = send(client, "post", "estimate", said)
        assert told["answer"].startswith("Can never be granted: Nothing measures tpu0, so what a run needs there is")
        told = send(client, "post", "estimate", {**said, "declared_vram": 8 * GIB})
        assert told["answer"] == ("Would get 8.0 GiB on tpu0 (booked only: nothing measures it), with 1.0 GiB of RAM.")
        whole = asks(ann, exclusive="device")
        assert (whole.charges[row.uuid]["granted"], whole.basis) == (16 * GIB, "declared")

    def test_a_plain_job_is_not_put_there(self, client: Client, ann: Any, node: Node) -> None:
        Device.objects.update(draining=True)
        row = tpu(ann, node, kind="gpu", index=5, backends=["rocm"])
        job = asks(ann, wanted={"kind": None}, declared_vram=GIB)
        assert job.state == "queued"
        nodes.edit_device(ann, row.pk, {"any_gpu": True})
        admission.run()
        job.refresh_from_db()
        assert (job.state, job.device) == ("admitted", row.uuid)

    def test_the_form_offers_its_kind_and_backend(self, client: Client, ann: Any) -> None:
        lonely = Node.objects.create(name="atlas", epoch=clock.epoch(), tick_clock=clock.now())
        tpu(ann, lonely)
        assert preselect(ann, "python train.py", "").gpu == "none"  # it means no TPU by just looking like a run
        page = client.get("/submit").content.decode()
        assert '<option value="tpu">TPU</option>' in page
        assert '<option value="xla">XLA</option>' in page

    def test_a_running_job_asks_for_more_there(self, ann: Any, node: Node) -> None:
        row = tpu(ann, node)
        job = a_running(ann, started_clock=clock.now(), admitted_clock=clock.now())
        asked = {"kind": "tpu", "backend": "xla", "group_bytes": 4 * GIB}
        request, _ = reserving.ask(job, Call("k", asked, HERE))
        admission.run()
        request.refresh_from_db()
        assert request.members == [
            {"uuid": row.uuid, "device_id": 0, "node": "atlas", "kind": "tpu", "backend": "xla", "bytes": 4 * GIB}
        ]
        never, _ = reserving.ask(job, Call("n", {**asked, "group_bytes": 13 * GIB, "device_id": 0}, HERE))
        assert never.state in ("waiting", "refused")

    def test_whether_a_hold_is_used_nobody_can_tell_so_only_its_time_ends_it(self, ann: Any, node: Node) -> None:
        row = tpu(ann, node)
        job = a_running(
            ann, kind="hold", device=row.uuid, charges={row.uuid: {"granted": 0, "held": 0, "unread": True}}
        )
        Job.objects.filter(pk=job.pk).update(started_at="2020-01-01T00:00:00Z")
        job.refresh_from_db()
        taking.look([job], snapshots.knobs_now()[0])
        job.refresh_from_db()
        assert job.stop_requested_at is None
        assert not job.evidence.get("warned_at")


class TestSeeing:
    """What a job finds in its environment."""

    def variables(self, job: Job) -> dict[str, str]:
        return dict(device_environment.of(job, {}, "").variables)

    def test_on_it_its_own_interface_and_nothing_else(self, ann: Any, node: Node) -> None:
        row = tpu(ann, node, index=5, driver_number=2)
        seen = self.variables(a_running(ann, device=row.uuid, charges={row.uuid: {"unread": True}}))
        assert (seen["TPU_VISIBLE_CHIPS"], seen["CUDA_VISIBLE_DEVICES"]) == ("2", "")
        assert (seen["TIDEGATE_DEVICE_UUIDS"], seen["HIP_VISIBLE_DEVICES"]) == (row.uuid, "-1")
        assert "TIDEGATE_VRAM_CAP_BYTES" not in seen

    def test_elsewhere_it_is_hidden(self, ann: Any, node: Node) -> None:
        tpu(ann, node)
        tpu(ann, node, kind="gpu", index=7, backends=["xpu"])
        seen = self.variables(a_running(ann))
        assert (seen["TPU_VISIBLE_CHIPS"], seen["ZE_AFFINITY_MASK"], seen["CUDA_VISIBLE_DEVICES"]) == (
            "-1",
            "9999",
            "1",
        )
        assert self.variables(a_job(ann, gpu="none", node="atlas"))["TPU_VISIBLE_CHIPS"] == "-1"

    def test_whoever_may_ask_for_more_sees_all_by_each_interface(self, ann: Any, node: Node) -> None:
        row = tpu(ann, node, kind="gpu", index=7, backends=["rocm", "opencl"], driver_number=0)
        seen = self.variables(a_running(ann, reserves=True))
        assert (seen["CUDA_VISIBLE_DEVICES"], seen["ROCR_VISIBLE_DEVICES"]) == ("1,0", "0")
        assert seen["TIDEGATE_ROCM_UUIDS"] == seen["TIDEGATE_OPENCL_UUIDS"] == row.uuid
        chip = tpu(
            ann, node
        )  # number 0, and yet behind: where CUDA goes by UUID it reads no further than one it knows not
        seen = self.variables(a_running(ann, reserves=True))
        assert seen["TIDEGATE_DEVICE_UUIDS"] == f"{UUIDS[1]},{UUIDS[0]},{chip.uuid},{row.uuid}"

    def test_a_container_is_never_given_one(self, ann: Any, node: Node) -> None:
        tpu(ann, node, kind="gpu", index=7, backends=["cuda"], any_gpu=True)
        Device.objects.filter(by_hand=False).update(draining=True)
        job = asks(ann, wanted={"kind": "GPU"}, image="busybox", engine="docker", declared_vram=GIB)
        assert job.state == "queued"
        seen = self.variables(a_running(ann, reserves=True, image="busybox"))  # it may ask for all that it can be given
        assert seen["CUDA_VISIBLE_DEVICES"] == seen["TIDEGATE_DEVICE_UUIDS"] == f"{UUIDS[1]},{UUIDS[0]}"

    def test_nor_is_what_runs_in_one_granted_one_later(self, ann: Any, node: Node) -> None:
        tpu(ann, node)
        asked = {"kind": "tpu", "backend": "xla", "group_bytes": GIB}
        started = {"started_clock": clock.now(), "admitted_clock": clock.now()}
        request, _ = reserving.ask(a_running(ann, image="busybox", **started), Call("k", asked, HERE))
        assert (request.state, request.code) == ("refused", "not_visible")
        assert "containers are given NVIDIA devices alone" in request.said


class TestPages:
    def test_every_page_says_that_nothing_measures_it(self, client: Client, ann: Any, node: Node) -> None:
        row = tpu(ann, node)
        job = asks(ann, declared_vram=4 * GIB)
        Job.objects.filter(pk=job.pk).update(state="running", started_at="2026-01-01T00:00:00Z")
        overview = words(client.get("/devices"))
        assert "booked only: nothing measures it; only for jobs that name its kind or backend" in overview
        assert "4.0 GiB booked" in overview
        assert re.search(r"12\.0 GiB\s+left", overview)
        page = words(client.get(f"/devices/atlas/{row.uuid}"))
        assert "nothing measures it: a job starts where the bookings leave room" in page
        assert "Nothing measures it, so there is no history of its use." in page
        assert "it is given out by its bookings alone" in words(client.get("/attribution"))
        assert "nobody watches or caps the job there" in words(client.get(f"/jobs/{job.pk}"))
        assert "4.0 GiB booked not measured" in re.sub(r"\s+", " ", words(client.get("/")))
        for word in ("stale", "lost", "no reading", "not read yet"):
            assert word not in page.lower()
            assert word not in overview.lower()
