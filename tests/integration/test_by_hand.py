"""Devices that an admin declares by hand: made, edited, removed."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from calibration.domain.samples import RAM, PoolSample, PoolState, Reading
from placement.api.shapes.device import DeviceAnswer, DeviceList
from placement.domain.errors import NotFound, Refused
from placement.models import AuditEntry, Device, Job, Lease, Node, Role
from placement.selectors import hardware
from placement.services import admission, cycle_row, declaring, nodes
from tests.integration.hand import TPU, asks, send, tpu, words
from tests.integration.rows import GIB, UUIDS, a_machine, a_user

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


def test_a_card_that_a_probe_finds_later_with_its_drivers_number_closes_it(
    client: Client, ann: Any, node: Node
) -> None:
    row = tpu(ann, node, kind="gpu", index=7, backends=["cuda"], driver_number=2)
    assert send(client, "get", f"devices/{row.pk}")["device"]["closed"] == ""
    found = PoolSample("GPU-new", "vram", "gpu2", PoolState.OK, total=24 * GIB, free=24 * GIB, index=2, backend="CUDA")
    nodes.discover("atlas", Reading("atlas", "b", 1.0, 1.0, {"GPU-new": found}, {}))
    said = (
        "gpu7 (16.0 GiB by hand) and gpu2 (24.0 GiB, found on the machine) are both number 2 of their driver "
        "(CUDA_VISIBLE_DEVICES): a job on one would run on the other, unseen there. "
        "Nothing new starts on gpu7: an admin says its own number, or removes it."
    )
    waits = asks(ann, device_wanted=row.uuid, wanted={"kind": "GPU"}, declared_vram=GIB)
    assert (waits.state, waits.code, waits.headline) == ("queued", "no_reading", said)
    assert send(client, "get", f"devices/{row.pk}")["device"]["closed"] == said
    for page in ("/devices", f"/devices/atlas/{row.uuid}"):
        assert said.rstrip(".") in words(client.get(page))
    assert words(client.get("/devices")).count("same number") == 2  # at its figures and in what is declared
    nodes.edit_device(ann, row.pk, {"driver_number": 3})
    admission.run()
    waits.refresh_from_db()
    assert (waits.state, waits.device) == ("admitted", row.uuid)
    assert said.rstrip(".") not in words(client.get("/devices"))


class TestDeclaring:
    def test_it_is_kept_told_and_on_record(self, client: Client, ann: Any, node: Node) -> None:
        said = {**TPU, "declared": "16 GB", "exclusive_only": True, "backends": ["xla", "opencl"]}
        made = send(client, "post", f"nodes/{node.pk}/devices", said, status=201)["device"]
        DeviceAnswer.model_validate({"device": made})
        assert (made["name"], made["backends"], made["declared"]) == ("tpu0", ["XLA", "OPENCL"], 16 * 10**9)
        assert (made["by_hand"], made["measurable"], made["any_gpu"], made["pool"]) == (True, False, False, None)
        assert [d.name for d in hardware.placeable(node.devices.all())] == ["gpu0", "gpu1", "tpu0"]
        entry = AuditEntry.objects.get(action="declare_device")
        assert (entry.who, entry.detail["after"]["backends"]) == ("ann", ["XLA", "OPENCL"])
        DeviceList.model_validate(send(client, "get", "devices"))

    @pytest.mark.parametrize(
        ("said", "field", "sentence"),
        [
            pytest.param({"backends": []}, "backends", "Say at least one of CUDA,", id="K3"),
            pytest.param({"backends": ["xla", "XLA"]}, "backends", "A backend is listed twice: xla, xla.", id="K4"),
            pytest.param({"backends": ["vulkan"]}, "backends", "backends is a tuple of Backend", id="no backend"),
            pytest.param({"index": -1}, "index", "The id of a device is 0 or more, not -1.", id="K6"),
            pytest.param({"index": 2**31}, "index", "A number of a device is at most", id="no column holds it"),
            pytest.param({"declared": 0}, "declared", "A capacity of 0 bytes is none", id="K5"),
            pytest.param({"declared": None}, "declared", "Say how much memory", id="K3, no memory"),
            pytest.param({"index": None}, "index", "Say its number, 0 or more", id="K3, no number"),
            pytest.param({"kind": "fpga"}, "kind", "kind is one of cpu, gpu, tpu", id="K6, no kind"),
            pytest.param({"kind": "cpu"}, "backends", "A CPU has no backend and no id", id="K2"),
            pytest.param({"kind": "cpu", "backends": [], "index": None}, "kind", "The CPU is declared twice.", id="K8"),
            pytest.param({"kind": "gpu"}, "index", "GPU 0 is declared twice.", id="G12: as one that was found"),
            pytest.param({"any_gpu": True}, "any_gpu", "A TPU is no GPU", id="not open"),
            pytest.param({"name": "gpu1"}, "name", "Another device of this node is called gpu1.", id="a name"),
            pytest.param(
                {"name": " GPU1\u00a0"}, "name", "Another device of this node is called GPU1.", id="looks alike"
            ),
            pytest.param(
                {"kind": "gpu", "index": 9, "backends": ["cuda"], "driver_number": 1},
                "driver_number",
                "gpu1 is number 1 of its driver (CUDA_VISIBLE_DEVICES) already",
                id="jobs would see another",
            ),
            pytest.param({"driver_number": -1}, "driver_number", "The id of a device is 0 or more", id="its driver's"),
        ],
    )
    def test_the_rules_of_a_declaration_speak(
        self, ann: Any, node: Node, said: dict[str, Any], field: str, sentence: str
    ) -> None:
        with pytest.raises(Refused) as refused:
            tpu(ann, node, **said)
        assert refused.value.fields[field].startswith(sentence)
        assert not Device.objects.filter(by_hand=True).exists()

    def test_a_tpu_may_offer_cuda_and_share_its_number_with_a_gpu(self, ann: Any, node: Node) -> None:
        assert tpu(ann, node, backends=["cuda"]).backends == ["CUDA"]  # K7, G12

    def test_an_edit_cannot_show_jobs_another_device_either(self, client: Client, ann: Any, node: Node) -> None:
        one = {"kind": "gpu", "index": 7, "backends": ["rocm"], "driver_number": 0}
        first = tpu(ann, node, **one)
        second = tpu(ann, node, **{**one, "index": 8, "driver_number": 1})
        third = tpu(ann, node, **{**one, "index": 9, "backends": ["opencl"]})  # nothing goes by its number there
        fields = send(client, "patch", f"devices/{second.pk}", {"driver_number": 0}, status=400)["error"]["fields"]
        assert fields["driver_number"].startswith("gpu7 is number 0 of its driver (ROCR_VISIBLE_DEVICES) already")
        send(client, "patch", f"devices/{third.pk}", {"backends": ["opencl", "rocm"]}, status=400)
        found = Device.objects.get(uuid=UUIDS[0])
        error = send(client, "patch", f"devices/{found.pk}", {"backends": ["cuda", "rocm"]}, status=400)["error"]
        assert "gpu7 is number 0" in error["fields"]["backends"]
        send(client, "patch", f"devices/{first.pk}", {"driver_number": 3, "name": " gpu7 "})
        first.refresh_from_db()
        assert first.name == "gpu7"
        send(client, "patch", f"devices/{second.pk}", {"driver_number": 0})

    def test_whoever_comes_second_with_a_number_is_told(self, client: Client, ann: Any, node: Node) -> None:
        tpu(ann, node)
        error = send(client, "post", f"nodes/{node.pk}/devices", {**TPU, "name": "x"}, status=400)["error"]
        assert error["fields"] == {"index": "TPU 0 is declared twice."}

    def test_only_admins(self, client: Client, node: Node) -> None:
        client.force_login(a_user("oscar", Role.OPERATOR))
        send(client, "post", f"nodes/{node.pk}/devices", TPU, status=403)
        assert client.post("/declarations/device/add", {}).status_code == 403
        assert "by-hand" not in client.get("/devices").content.decode()

    def test_the_form_makes_one_and_says_beside_its_fields_what_is_wrong(
        self, client: Client, ann: Any, node: Node
    ) -> None:
        assert "Declare a device that no probe finds" in words(client.get("/devices"))
        filled = {"new-node": str(node.pk), "new-kind": "tpu", "new-index": "3", "new-declared": "16 GB"}
        wrong = client.post("/declarations/device/add", filled)
        assert wrong.status_code == 422
        assert 'id="id-new-backends_error"' in wrong.content.decode()
        assert "Say at least one of CUDA, " in words(wrong)
        empty = words(client.post("/declarations/device/add", {"new-node": str(node.pk), "new-kind": "gpu"}))
        for said in ("Say at least one of ", "Say its number, ", "Say how much memory jobs may take of it, "):
            assert empty.count(said) == 1
        answer = client.post("/declarations/device/add", {**filled, "new-backends": ["XLA", "CUDA"]}, follow=True)
        row = Device.objects.get(by_hand=True)
        assert (row.name, row.index, row.backends, row.declared) == ("tpu3", 3, ["XLA", "CUDA"], 16 * 10**9)
        assert "tpu3 is declared: jobs are put there by its bookings alone." in words(answer)


class TestEditing:
    def test_every_field_and_nobody_is_overwritten(self, client: Client, ann: Any, node: Node) -> None:
        row = tpu(ann, node)
        path = f"devices/{row.pk}"
        said = {"index": 4, "driver_number": 1, "declared": 8 * GIB, "backends": ["xla", "opencl"], "name": "left"}
        told = send(client, "patch", path, {**said, "expected": {"backends": ["xla"], "index": 0}})
        row.refresh_from_db()
        assert (row.index, row.driver_number, row.declared, row.backends) == (4, 1, 8 * GIB, ["XLA", "OPENCL"])
        assert "It matches requests for XLA or OPENCL." in told["message"]
        late = send(client, "patch", path, {"index": 5, "expected": {"index": 0}}, status=409)["error"]["message"]
        assert "was changed meanwhile by ann: index is 4 now" in late
        assert "TPU is no GPU" in send(client, "patch", path, {"any_gpu": True}, status=400)["error"]["message"]
        assert "cannot be edited" in send(client, "patch", path, {"one_pool": True}, status=400)["error"]["message"]

    def test_its_page_has_a_form_with_its_own_fields(self, client: Client, ann: Any, node: Node) -> None:
        row = tpu(ann, node, kind="gpu", index=7, backends=["rocm"])
        address = f"/devices/atlas/{row.uuid}"
        page = client.get(address).content.decode()
        seen = unescape(re.search(r'name="(device-\d+)-seen" value="([^"]*)"', page)[2])
        at = f"device-{row.pk}-"
        filled = {f"{at}seen": seen, f"{at}name": "amd", f"{at}index": "7", f"{at}declared": "16 GiB"}
        filled |= {f"{at}backends": ["ROCM", "OPENCL"], f"{at}any_gpu": "on", f"{at}driver_number": "0"}
        preview = words(client.post(f"/declarations/device/{row.pk}/preview", filled))
        assert "Jobs that ask for any GPU may be put on it, though nothing measures what they use." in preview
        client.post(f"/declarations/device/{row.pk}/edit", filled)
        row.refresh_from_db()
        assert (row.name, row.backends, row.any_gpu, row.driver_number) == ("amd", ["ROCM", "OPENCL"], True, 0)
        assert not row.one_pool

    def test_more_backends_of_a_card_that_was_found_stay_when_it_is_found_again(self, ann: Any, node: Node) -> None:
        row = Device.objects.get(uuid=UUIDS[0])
        nodes.edit_device(ann, row.pk, {"backends": ["opencl", "cuda"]})
        pool = PoolSample(
            UUIDS[0], "vram", "gpu0", PoolState.OK, total=24 * GIB, index=0, model="A5000", backend="CUDA"
        )
        ram = PoolSample(RAM, "ram", "RAM", PoolState.OK, total=64 * GIB, free=60 * GIB, used=4 * GIB)
        nodes.discover("atlas", Reading("atlas", "b", 1.0, 1.0, {RAM: ram, UUIDS[0]: pool}, {}))
        row.refresh_from_db()
        assert (row.model, row.backends) == ("A5000", ["CUDA", "OPENCL"])
        with pytest.raises(Refused, match="CUDA is what its driver offers"):
            nodes.edit_device(ann, row.pk, {"backends": ["opencl"]})
        with pytest.raises(Refused, match="cannot be edited"):
            nodes.edit_device(ann, row.pk, {"any_gpu": True})

    def test_a_look_at_the_machine_leaves_it_alone(self, ann: Any, node: Node) -> None:
        row = tpu(ann, node)
        ram = PoolSample(RAM, "ram", "RAM", PoolState.OK, total=64 * GIB, free=60 * GIB, used=4 * GIB)
        assert nodes.discover("atlas", Reading("atlas", "b", 1.0, 1.0, {RAM: ram}, {})) == []
        assert row.uuid not in {one.pool for one in nodes.expected("atlas")}
        row.refresh_from_db()
        assert not row.retired


class TestRemoving:
    def test_it_is_refused_with_who_and_then_leaves_its_history(self, client: Client, ann: Any, node: Node) -> None:
        row = tpu(ann, node)
        job = asks(ann, declared_vram=4 * GIB)
        assert job.state == "admitted"
        answer = send(client, "delete", f"devices/{row.pk}", status=409)["error"]["message"]
        assert answer.startswith(f"tpu0 is held by #{job.pk} train-vit of ann. Drain it")
        assert "is held by" in words(client.post(f"/declarations/device/{row.pk}/remove", follow=True))
        Lease.objects.update(released_at="2026-01-01T00:00:00Z")
        Job.objects.filter(pk=job.pk).update(state="finished", outcome="completed")
        assert "is removed" in send(client, "delete", f"devices/{row.pk}")["message"]
        assert not {row.uuid} & {d["uuid"] for d in send(client, "get", "devices")["devices"]}
        assert "tpu0" in words(client.get(f"/jobs/{job.pk}"))
        assert AuditEntry.objects.filter(action="remove_device", who="ann").exists()

    def test_declared_again_it_is_the_device_that_jobs_wait_for(self, client: Client, ann: Any, node: Node) -> None:
        row = tpu(ann, node, index=3, name="coral")
        nodes.drain(ann, "device", row.pk, True)
        job = asks(ann, declared_vram=4 * GIB, device_wanted=row.uuid)
        declaring.remove(ann, row.pk)
        admission.run()
        job.refresh_from_db()
        assert job.headline == "Can never start: coral, which it asks for, is declared no more on atlas."
        assert tpu(ann, node, index=4).uuid != row.uuid  # another one
        again = tpu(ann, node, index=3, name="coral", declared=8 * GIB)
        assert (again.pk, again.uuid, Device.objects.get(pk=row.pk).declared) == (row.pk, row.uuid, 8 * GIB)
        admission.run()
        job.refresh_from_db()
        assert (job.state, job.device) == ("admitted", row.uuid)
        assert tpu(ann, node).uuid != row.uuid  # its number and name are free again

    def test_what_was_found_cannot_be_removed(self, client: Client, ann: Any, node: Node) -> None:
        row = Device.objects.get(uuid=UUIDS[0])
        assert "was found on the machine" in send(client, "delete", f"devices/{row.pk}", status=409)["error"]["message"]

    def test_whoever_comes_after_it_is_told_that_it_is_gone(self, client: Client, ann: Any, node: Node) -> None:
        row = tpu(ann, node)
        declaring.remove(ann, row.pk)
        for act in (
            lambda: nodes.edit_device(ann, row.pk, {"declared": GIB}),
            lambda: nodes.hold(ann, "device", row.pk),
            lambda: nodes.drain(ann, "device", row.pk, True),
        ):
            with pytest.raises(NotFound, match=f"There is no device {row.pk}"):
                act()

    def test_a_page_that_comes_back_with_nonsense_for_what_was_seen_is_no_fault(
        self, client: Client, ann: Any, node: Node
    ) -> None:
        row = tpu(ann, node)
        at = f"device-{row.pk}-"
        filled = {f"{at}name": "tpu0", f"{at}index": "0", f"{at}declared": "8 GiB", f"{at}backends": "XLA"}
        answer = client.post(f"/declarations/device/{row.pk}/preview", {**filled, f"{at}seen": "[" * 100_000})
        assert answer.status_code == 200
