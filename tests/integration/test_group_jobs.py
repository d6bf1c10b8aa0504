"""A job that takes a group of devices, from its submission to its end, on a database and without processes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from calibration.domain.attribution import attribute
from calibration.domain.knobs import Knobs
from calibration.domain.samples import RAM, Claim, Identity, PoolSample, PoolState, ProcessSample, Reading
from calibration.models import Sediment
from placement import snapshots
from placement.api.shapes.job import JobAnswer
from placement.domain.ending.outcomes import Verdict
from placement.domain.jobs import Outcome, State
from placement.models import DecisionRecord, Device, Job, Lease, Role
from placement.services import (
    admission,
    capping,
    cycle_row,
    device_environment,
    ending,
    explaining,
    flags,
    postmortems,
)
from placement.services.learning import Windows, owner
from tests.integration.rows import GIB, UUIDS, a_job, a_machine, a_pool, a_user

pytestmark = pytest.mark.django_db
PAIR = {"min": 2, "max": 2, "prefer_max": False, "per_device": None, "group": None}


@pytest.fixture(autouse=True)
def machine() -> None:
    explaining.forget_all_but(())
    cycle_row.ensure()
    a_machine("testnode")


def a_pair(user: Any, **more: Any) -> Job:
    fields = {"gpu": "group", "devices_wanted": PAIR, "declared_vram": 9 * GIB, "declared_ram": GIB, "decision": {}}
    return a_job(user, **{**fields, "headline": "", "code": "", "decided_at": None, "estimate": {}, **more})


def leases(job: Job) -> list[tuple[str, int, bool]]:
    return sorted(Lease.objects.filter(job=job, released_at=None).values_list("pool", "bytes", "promise"))


def test_a_group_is_granted_with_a_lease_on_each_device_and_gives_all_back() -> None:
    job = a_pair(a_user("ann", Role.ADMIN))
    admission.run()
    job.refresh_from_db()
    assert (job.state, job.device, job.devices) == (State.ADMITTED, UUIDS[0], UUIDS)
    assert leases(job) == [(UUIDS[0], 9 * GIB, False), (UUIDS[1], 9 * GIB, False), ("ram", GIB, False)]
    assert set(job.charges) == {*UUIDS, "ram"}
    [running] = snapshots.take().running
    assert running.devices == UUIDS
    assert DecisionRecord.objects.get(job=job).headline == "Starts on gpu0 + gpu1: needs 9.0 GiB on each."

    second = a_pair(job.user, declared_vram=16 * GIB)  # 23 less 9 GiB are left of each
    admission.run()
    second.refresh_from_db()
    assert (second.state, leases(second)) == (State.QUEUED, [])
    assert second.decision["candidates"][0]["devices"] == list(UUIDS)
    ending.release(job)
    assert leases(job) == []


def test_a_crash_in_the_middle_of_a_grant_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    job = a_pair(a_user("ann", Role.ADMIN))

    def fails(rows: Any) -> None:
        next(iter(rows)).save()  # the first device's lease stands, the others never come
        raise RuntimeError("out of order")

    monkeypatch.setattr(Lease.objects, "bulk_create", fails)
    with pytest.raises(RuntimeError):
        admission.run()
    job.refresh_from_db()
    assert (job.state, job.charges, job.devices) == (State.QUEUED, {}, ())
    assert not Lease.objects.exists()


def test_the_head_keeps_its_plan_about_both_devices() -> None:
    user = a_user("ann", Role.ADMIN)
    first = a_job(user, declared_vram=20 * GIB, declared_ram=GIB, time_limit_s=600, device_wanted=UUIDS[1])
    admission.run()
    Job.objects.filter(pk=first.pk).update(state="running", used={UUIDS[1]: 20 * GIB})
    a_pool("testnode", UUIDS[1], "gpu1", 24 * GIB, 21 * GIB, owners={f"job:{first.pk}": 20 * GIB})
    group, younger = a_pair(user), a_job(user, declared_vram=20 * GIB, declared_ram=GIB, device_wanted=UUIDS[0])
    admission.run()
    group.refresh_from_db()
    younger.refresh_from_db()
    assert group.plan["devices"] == list(UUIDS)
    assert (younger.state, younger.code) == (State.QUEUED, "set_aside")
    waiting = {one.job: one for one in snapshots.take().waiting}
    assert waiting[group.pk].plan is not None
    assert waiting[group.pk].plan.devices == UUIDS


def test_what_is_reserved_exactly_stays_until_the_end() -> None:
    job = a_pair(a_user("ann", Role.ADMIN), devices_wanted={**PAIR, "group": 9 * GIB + 1}, declared_vram=None)
    admission.run()
    job.refresh_from_db()
    shares = {UUIDS[0]: (9 * GIB + 1) // 2 + 1, UUIDS[1]: (9 * GIB + 1) // 2}
    assert leases(job) == [*((uuid, size, True) for uuid, size in shares.items()), ("ram", GIB, False)]
    Job.objects.filter(pk=job.pk).update(state="running", started_at=timezone.now())
    job.refresh_from_db()
    watch = Watch(job)
    for _ in range(30):
        watch.look(GIB, 2 * GIB)
    assert {uuid: (job.charges[uuid]["granted"], job.charges[uuid]["held"]) for uuid in UUIDS} == {
        uuid: (size, size) for uuid, size in shares.items()
    }
    assert job.charges[RAM]["settled"]
    [seen] = snapshots.take().running
    assert seen.charges[UUIDS[0]].promise
    assert seen.charges[UUIDS[0]].growth == shares[UUIDS[0]]  # nothing of it is stored as used yet
    assert not seen.charges[RAM].promise


class Watch:
    """Readings of a job on both devices, by the product's own windows and attribution."""

    def __init__(self, job: Job) -> None:
        self.job, self.windows, self.at = job, Windows(), 1000.0
        self.knobs = Knobs.defaults().replace(settle_seconds=3.0, context_allowance_mib=100)

    def look(self, *amounts: int) -> Reading:
        self.at += 1.0
        pools = {RAM: PoolSample(RAM, "ram", "RAM", PoolState.OK, 64 * GIB, 60 * GIB, 4 * GIB, read_at=self.at)}
        for number, (uuid, used) in enumerate(zip(UUIDS, amounts, strict=True)):
            pools[uuid] = PoolSample(
                uuid, "vram", f"gpu{number}", PoolState.OK, 24 * GIB, 24 * GIB - used, used,
                read_at=self.at, busy=1.0, processes=((700, used),) if used else (),
            )  # fmt: skip
        me = Identity("boot", 700, 50)
        held = {uuid: used for uuid, used in zip(UUIDS, amounts, strict=True) if used}
        process = ProcessSample(700, 1, 50, ram=100 << 20, ram_exact=True, vram=held)
        reading = Reading("testnode", "boot", self.at, 1e9 + self.at, pools, {700: process})
        found = attribute(reading, [Claim(owner(self.job), roots=(me,))])
        self.windows.observe(self.job, reading, found, self.knobs, 1)
        return reading


def test_what_a_device_needs_is_learned_from_the_one_that_held_most() -> None:
    job = a_pair(a_user("ann", Role.ADMIN))
    admission.run()
    Job.objects.filter(pk=job.pk).update(state="running", started_at=timezone.now())
    job.refresh_from_db()
    watch = Watch(job)
    for first, second in ((GIB, 0), (4 * GIB, 2 * GIB), (3 * GIB, 5 * GIB), (3 * GIB, 3 * GIB)):
        reading = watch.look(first, second)
    assert job.used[UUIDS[1]] == 3 * GIB
    assert flags.of(job, reading, 0, 0) == []
    watch.windows.close(
        job, watch.at, timezone.now(), "completed", watch.knobs,
        died_of={}, receipt=None, device_total=24 * GIB, duration=60.0,
    )  # fmt: skip
    kept = Sediment.objects.get()
    assert kept.peaks["vram"] == 5 * GIB
    assert kept.device_peaks == [5 * GIB, 4 * GIB]
    assert kept.charge["vram"] == 9 * GIB


def test_a_job_finds_its_devices_in_the_order_of_their_grant_and_each_has_a_cap(settings: Any, tmp_path: Any) -> None:
    settings.RUNS = tmp_path
    a_pool("testnode", UUIDS[0], "gpu0", 24 * GIB, GIB, index=0)
    a_pool("testnode", UUIDS[1], "gpu1", 24 * GIB, 3 * GIB, index=1)
    job = a_pair(a_user("ann", Role.ADMIN))
    admission.run()
    job.refresh_from_db()
    assert job.devices == UUIDS[::-1]  # the second has less left over
    around = device_environment.of(job, {}, "")
    assert around.variables["CUDA_VISIBLE_DEVICES"] == "1,0"
    assert around.variables["TIDEGATE_DEVICE_UUIDS"] == f"{UUIDS[1]},{UUIDS[0]}"
    cap = job.charges[UUIDS[0]]["cap"]
    assert around.variables["TIDEGATE_VRAM_CAPS"] == f"{UUIDS[1]}={cap},{UUIDS[0]}={cap}"

    run_dir = tmp_path / f"{job.pk}-{job.attempt}"
    for folder in ("control", "receipts"):
        (run_dir / folder).mkdir(parents=True)
    capping.note(run_dir, around.told)
    rows = [{"uuid": UUIDS[1], "pool": 3 * GIB}, {"uuid": UUIDS[0], "pool": 2 * GIB}]
    (run_dir / "receipts" / "700.torch-applied.json").write_text(json.dumps({"devices": rows}))
    said = [capping.stand(job, device=uuid)["sentence"] for uuid in job.devices]
    assert said == [f"capped in torch at {n}.0 GiB and its context (receipt of 1 process)" for n in (3, 2)]
    assert {capping.at_the_end(job)[uuid]["force"]["kind"] for uuid in UUIDS} == {"framework"}


def test_groups_go_in_and_come_out_of_the_api() -> None:
    user = a_user("ann", Role.ADMIN)
    client = Client()
    client.force_login(user)

    def post(status: int, **fields: Any) -> Any:
        body = json.dumps({"command": "python train.py", "cwd": "/tmp", "gpu": "group", **fields})
        answer = client.post("/api/v1/jobs", body, content_type="application/json")
        assert answer.status_code == status, answer.content
        return answer.json()

    asked = {"min_devices": 1, "max_devices": 2, "prefer_max": True, "memory": "exact", "group_memory": "6 GiB"}
    made = Job.objects.get(pk=post(201, **asked, declared_ram="1 GiB")["job"]["id"])
    assert json.loads(made.key_params)[0] == "devices: 1 to 2"
    admission.run()
    shown = client.get(f"/api/v1/jobs/{made.pk}").json()
    JobAnswer.model_validate(shown)
    told = shown["job"]
    assert (told["gpu"], told["device"], told["devices"]) == ("group", UUIDS[0], list(UUIDS))
    assert {name: told[name] for name in asked} == {**asked, "group_memory": 6 * GIB}
    assert {told["charges"][uuid]["granted"] for uuid in UUIDS} == {3 * GIB}
    assert client.get("/api/v1/queue").json()["running"][0]["devices"] == list(UUIDS)

    many = post(409, min_devices=3, max_devices=3)
    assert "it needs 3 devices of one node, and there are 2 on testnode" in json.dumps(many)
    assert "A group of at least 2 devices cannot have 1 at most." in json.dumps(post(400, min_devices=2, max_devices=1))


def test_pages_name_all_devices_of_a_group() -> None:
    user = a_user("ann", Role.ADMIN)
    job = a_pair(user)
    admission.run()
    client = Client()
    client.force_login(user)
    assert "gpu0 + gpu1" in client.get("/").content.decode()
    assert "Starting on gpu0 + gpu1 of testnode." in client.get(f"/jobs/{job.pk}").content.decode()
    for device in Device.objects.select_related("node"):
        assert f"#{job.pk}" in client.get(f"/?device={device.uuid}").content.decode()
        shown = client.get(f"/devices/{device.node.name}/{device.uuid}").content.decode()
        assert f"/jobs/{job.pk}" in shown
        assert "9.0 GiB" in shown


def test_a_running_group_shows_what_it_holds_of_each_device() -> None:
    user = a_user("ann", Role.ADMIN)
    job = a_pair(user)
    admission.run()
    job.refresh_from_db()
    charges = {**job.charges, UUIDS[0]: {**job.charges[UUIDS[0]], "cap": 10 * GIB}}
    used = {UUIDS[0]: 2 * GIB, UUIDS[1]: 3 * GIB, RAM: GIB}
    Job.objects.update(state="running", started_at=timezone.now(), charges=charges, used=used)
    client = Client()
    client.force_login(user)
    now = client.get("/").content.decode()
    assert "5.0 of 18.0 GiB" in now
    assert "gpu0 2.0 GiB · gpu1 3.0 GiB" in now.replace("\N{NO-BREAK SPACE}", " ")
    assert re.search(r"caps 10\.0 GiB to \S+ GiB each", now)
    page = client.get(f"/jobs/{job.pk}").content.decode()
    assert "Estimated need: 9.0 GiB on each of 2 devices" in page.replace("\N{NO-BREAK SPACE}", " ")
    for text in ('id="chart-device-0"', 'id="chart-device-1"', 'id="chart-ram"', "<b>gpu1</b> over its time"):
        assert text in page
    drawn = [client.get(f"/jobs/{job.pk}/memory/device-{number}").json() for number in (0, 1)]
    assert drawn[0]["version"] != drawn[1]["version"]  # caps differ
    assert client.get(f"/jobs/{job.pk}/memory/device-2").status_code == 200
    assert client.get(f"/jobs/{job.pk}/memory/tape").status_code == 404
    levels = [client.get(f"/api/v1/jobs/{job.pk}/memory?number={n}").json()["levels"]["cap"] for n in (0, 1)]
    assert levels[0] == 10 * GIB != levels[1]
    Job.objects.update(state="finished", outcome="completed", ended_at=timezone.now())
    peaks = {"vram": 5 * GIB, "ram": GIB}
    Sediment.objects.create(owner=f"job:{job.pk}", completed=True, at=timezone.now(), peaks=peaks)
    assert client.get(f"/jobs/{job.pk}").content.decode().count("peak, at most 5.0 GiB") == 4  # in the bar's name, too


def test_what_is_reserved_exactly_is_the_rung_that_counts() -> None:
    user = a_user("ann", Role.ADMIN)
    client = Client()
    client.force_login(user)
    body = {"command": "x", "cwd": "/tmp", "gpu": "one", "memory": "exact", "per_device_memory": "3 GiB"}
    seen = client.post("/api/v1/estimate", json.dumps(body), content_type="application/json").json()
    counted = [rung for rung in seen["estimate"]["pools"]["vram"]["rungs"] if rung["counted"]]
    assert [(rung["basis"], rung["bytes"], rung["why"]) for rung in counted] == [
        ("declared", 3 * GIB, "reserved exactly")
    ]


def test_of_a_group_that_ran_out_the_device_nearest_to_its_cap_is_looked_at_unless_one_was_named() -> None:
    job = a_pair(a_user("ann", Role.ADMIN))
    admission.run()
    job.refresh_from_db()
    caps = {uuid: {**job.charges[uuid], "cap": 10 * GIB} for uuid in UUIDS}
    job.charges, job.used, job.node = caps, {UUIDS[0]: GIB, UUIDS[1]: 9 * GIB}, "testnode"
    verdict = Verdict(Outcome.OUT_OF_MEMORY, "", "nothing", "vram")
    found = postmortems.of(job, verdict, None, timezone.now(), None)
    assert found is not None
    assert found.used == 9 * GIB
    job.evidence = {"watchdog": {"pool": UUIDS[0], "used": 2 * GIB}}
    found = postmortems.of(job, verdict, None, timezone.now(), None)
    assert found is not None
    assert found.used == 2 * GIB
