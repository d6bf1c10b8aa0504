"""A person takes a device for a while: a job that waits its turn, is held exactly, and ends when nothing uses it."""

from __future__ import annotations

import re
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.test import Client
from django.utils import timezone

from calibration.domain.knobs import DEFAULTS
from calibration.domain.samples import Identity, PoolSample, PoolState, ProcessSample, Reading
from calibration.domain.windows import Window
from placement import snapshots
from placement.domain.ending.outcomes import Evidence, decide_outcome
from placement.domain.errors import Refused
from placement.domain.knobs import Knobs
from placement.domain.submitting.taken import RAM_OF_ITS_OWN, Wish, of_hold
from placement.models import Device, Hook, Job, Lease, Notice, NoticeSettings
from placement.selectors import again, devices, rows, submit
from placement.services import admission, cycle_row, leased, nodes, taking
from placement.services.settling import settled
from tests.integration.rows import GIB, UUIDS, a_job, a_machine, a_user

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placement.services.accounts.problem", lambda user: "")
    a_machine()
    cycle_row.ensure()


def taken(wish: Wish, **more: Any) -> Job:
    job = taking.take(a_user("ada"), wish)
    admission.run()
    Job.objects.filter(pk=job.pk).update(**more)
    return Job.objects.select_related("user").get(pk=job.pk)


def test_part_of_a_device_is_held_exactly_whatever_is_used_of_it() -> None:
    job = taken(Wish("atlas", UUIDS[0], 6 * GIB, 7200, "a notebook"))
    assert (job.state, job.device, job.argv) == ("admitted", UUIDS[0], ["sleep", "7200"])
    leases = {lease.pool: (lease.bytes, lease.promise) for lease in Lease.objects.all()}
    assert leases == {UUIDS[0]: (6 * GIB, True), "ram": (RAM_OF_ITS_OWN, True)}
    assert all(charge["promise"] for charge in job.charges.values())
    (running,) = snapshots.take().running
    assert running.charges[UUIDS[0]].promise
    assert running.charges[UUIDS[0]].held == 6 * GIB
    assert not running.cold


def test_what_is_used_beyond_a_hold_counts_and_the_hold_stays_what_it_is(client: Client) -> None:
    job = taken(Wish("atlas", UUIDS[0], 6 * GIB, 7200), state="running", used={UUIDS[0]: 8 * GIB, "ram": GIB})
    job.charges = settled(job, Window(started_at=0.0), 1.0, DEFAULTS, 1)
    job.save(update_fields=["charges"])
    leased.follow([job])
    charge = job.charges[UUIDS[0]]
    assert (charge["granted"], charge["held"], charge["cap"]) == (6 * GIB, 8 * GIB, None)
    assert Lease.objects.get(pool=UUIDS[0]).bytes == 6 * GIB
    client.force_login(job.user)
    assert "a promise: held whole until the end, used or not" in client.get(f"/jobs/{job.pk}").content.decode()


def test_holds_that_live_when_the_service_is_updated_get_the_mark() -> None:
    job = taken(Wish("atlas", UUIDS[0], 6 * GIB), state="running")
    other = a_job(job.user)
    old = {pool: {k: v for k, v in charge.items() if k != "promise"} for pool, charge in job.charges.items()}
    Job.objects.filter(pk=job.pk).update(charges=old)
    Lease.objects.update(promise=False)
    import_module("placement.migrations.0025_promises").mark(apps, None)
    job.refresh_from_db(), other.refresh_from_db()
    assert all(charge["promise"] for charge in job.charges.values())
    assert not Lease.objects.exclude(promise=True).exists()
    assert other.charges == {}


def test_whoever_is_told_of_stops_when_the_service_is_updated_is_told_of_the_ends_of_holds() -> None:
    ada, bob = a_user("ada"), a_user("bob")
    for user, kinds in ((ada, ["failed", "stopped"]), (bob, ["failed"])):
        NoticeSettings.objects.create(user=user, kinds=kinds)
        Hook.objects.create(user=user, kinds=kinds, sealed=b"")
    import_module("placement.migrations.0026_hold_ends").tell(apps, None)
    for told in (NoticeSettings.objects, Hook.objects):
        assert told.get(user=ada).kinds == ["failed", "hold_ends", "stopped"]
        assert told.get(user=bob).kinds == ["failed"]


def test_a_device_alone_lets_nobody_else_in() -> None:
    job = taken(Wish("atlas", UUIDS[0]))
    other = a_job(job.user, declared_vram=GIB, declared_ram=GIB, device_wanted=UUIDS[0], key_workload="other")
    admission.run()
    other.refresh_from_db()
    assert (job.state, other.code) == ("admitted", "exclusive_device")


def test_pages_say_of_a_device_that_is_taken_alone_that_nothing_of_it_is_left(client: Client) -> None:
    job = taken(Wish("atlas", UUIDS[0]), state="running", started_at=timezone.now())
    left = {tank.pool: (tank.left, tank.notes) for tank in devices.all_tanks(sees_commands=True)}
    assert left[UUIDS[0]] == ("nothing", (f"#{job.pk} has gpu0 alone: nothing else starts on it",))
    assert left[UUIDS[1]][0] != "nothing"
    client.force_login(job.user)
    sums = re.findall("<tfoot>.*?<b>(.*?)</b>", client.get(f"/devices/atlas/{UUIDS[0]}").content.decode(), re.DOTALL)
    assert sums == ["nothing", "nothing"]
    (node,) = client.get("/api/v1/nodes").json()["nodes"]
    assert (node["alone"], [d["alone"] for d in node["devices"]]) == (None, [job.pk, None])
    by_pool = {pool["pool"]: pool["alone"] for pool in client.get("/api/v1/queue").json()["pools"]}
    assert by_pool == {UUIDS[0]: job.pk, UUIDS[1]: None, "ram": None}
    said = nodes.preview_device(Device.objects.get(uuid=UUIDS[0]), {"declared": 20 * GIB})
    assert said[0].endswith("nothing of 20.0 GiB stays for others while one has it alone.")
    page = client.get(f"/jobs/{job.pk}").content.decode()
    assert "ada has taken gpu0 of atlas alone." in page
    assert "It is given back by cancelling it, at the latest when its time is over." in page
    assert "Estimated need" not in page
    assert "What is learned from it" not in page
    assert "all of it, alone: nothing else starts there until the end" in page
    (row,) = (rows.running(job, {}) for job in devices.active_jobs())
    assert (row.used, row.cap) == ("the device alone", "")
    assert again.recent(job.user) == ()
    assert submit.choices(job.user).directories == ()


def test_a_hold_that_ran_out_says_so_and_is_no_command_to_be_changed(client: Client) -> None:
    ends = [of_hold(decide_outcome(Evidence(code=code))) for code in (0, 1)]
    assert [end.sentence for end in ends] == ["Its time was over.", "Failed with code 1."]
    assert {end.feeds for end in ends} == {"nothing"}
    job = taken(Wish("atlas", UUIDS[0]), state="finished", outcome="completed", ended_at=timezone.now())
    client.force_login(job.user)
    page = client.get(f"/jobs/{job.pk}").content.decode()
    assert "Run again" in page
    assert "Submit again with changes" not in page


def test_a_part_that_is_taken_leaves_the_rest(client: Client) -> None:
    job = taken(Wish("atlas", UUIDS[0], 6 * GIB), state="running")
    client.force_login(job.user)
    assert "ada has taken 6.0 GiB of gpu0 of atlas." in client.get(f"/jobs/{job.pk}").content.decode()
    assert devices.all_tanks(sees_commands=True)[0].left not in ("nothing", "closed")


def test_of_a_machine_that_is_taken_nothing_is_left() -> None:
    taken(Wish("atlas"), state="running")
    assert {tank.left for tank in devices.all_tanks(sees_commands=True)} == {"nothing"}


def test_a_whole_machine_can_be_taken() -> None:
    job = taken(Wish("atlas"))
    assert (job.state, job.exclusive, job.gpu, job.name) == ("admitted", "machine", "none", "hold of atlas")


@pytest.mark.parametrize(
    "wish",
    [Wish("atlas", seconds=10), Wish("atlas", seconds=9e6), Wish("gone"), Wish("atlas", "GPU-x"),
     Wish("atlas", UUIDS[0], 0), Wish("atlas", UUIDS[0], 99 * GIB), Wish("atlas", UUIDS[0], 1 << 70),
     Wish("atlas", "", GIB)],
)  # fmt: skip
def test_what_cannot_be_taken_is_refused(wish: Wish) -> None:
    with pytest.raises(Refused):
        taking.take(a_user("ada"), wish)
    assert not Job.objects.exists()


def test_a_hold_that_nothing_uses_is_announced_and_then_ends() -> None:
    now = timezone.now()
    job = taken(Wish("atlas", UUIDS[0]), state="running", started_at=now - timedelta(minutes=52), used={UUIDS[0]: 0})
    knobs = Knobs(taken_idle_minutes=60.0, taken_warning_minutes=10.0)
    for _ in range(2):
        taking.look([job], knobs)
        job.refresh_from_db()
    (notice,) = Notice.objects.filter(job=job, title__contains="soon ends")
    assert notice.kind == "hold_ends"
    assert "soon ends" in taking.words(job)[0]
    assert job.stop_requested_at is None

    Job.objects.filter(pk=job.pk).update(started_at=now - timedelta(minutes=61))
    job.refresh_from_db()
    taking.look([job], knobs)
    job.refresh_from_db()
    assert (job.stop_reason, job.stop_requested_at is not None) == ("unused", True)
    assert "61 min" in job.evidence["unused"]["sentence"]


@pytest.mark.parametrize(("device", "seconds"), [(UUIDS[0], 7200.0), ("", 7200.0), (UUIDS[0], 600.0)])
def test_the_end_of_its_time_is_announced_once_also_where_it_is_used(device: str, seconds: float) -> None:
    now = timezone.now()
    soon = now - timedelta(seconds=seconds - 4 * 60)
    job = taken(Wish("atlas", device, None, seconds), state="running", started_at=now, used={device: 6 * GIB})
    taking.look([job], Knobs())
    assert not Notice.objects.filter(job=job, title__contains="soon ends").exists()
    job.started_at = soon
    for _ in range(2):
        taking.look([job], Knobs())
    (notice,) = Notice.objects.filter(job=job, title__contains="soon ends")
    assert notice.user == job.user
    assert "over in 4 min. What you run there goes on" in notice.sentence
    assert taking.words(job) == [
        "soon ends: its time is nearly over; what runs there goes on, and others may start beside it"
    ]
    job.refresh_from_db()
    assert (job.evidence["soon_over"], job.stop_requested_at) == (True, None)


@pytest.mark.parametrize("used", [GIB, None])
def test_one_that_is_used_or_that_nobody_can_tell_of_stays(used: int | None) -> None:
    long_ago = timezone.now() - timedelta(hours=5)
    job = taken(Wish("atlas", UUIDS[0]), state="running", started_at=long_ago, used={UUIDS[0]: used})
    taking.look([job], Knobs())
    job.refresh_from_db()
    assert job.stop_requested_at is None
    assert job.taken_used_at is not None


def test_processes_of_the_person_on_the_device_count_for_the_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taking, "account_of", lambda job: "ada")
    job = taken(Wish("atlas", UUIDS[0]), state="running")
    names = {7: "ada", 8: "bob", 9: "ada", 10: "ada", 11: "ada"}
    groups = {11: "/c"}
    processes = {
        pid: ProcessSample(pid, 0, pid, user=user, name="p", cgroup=groups.get(pid, "")) for pid, user in names.items()
    }
    on_device = tuple((pid, GIB) for pid in (7, 8, 10, 11))
    pool = PoolSample(UUIDS[0], "vram", "gpu0", PoolState.OK, total=24 * GIB, used=4 * GIB, processes=on_device)
    reading = Reading("atlas", "b", 1.0, 1.0, {UUIDS[0]: pool}, processes)
    told = taking.theirs([job], reading, {10: "another's"}.get, {"/c": "job:9"}.get)
    assert told == {job.pk: frozenset({Identity("b", 7, 7)})}


def test_the_page_of_a_device_and_the_api_take_it(client: Client) -> None:
    ada = a_user("ada")
    client.force_login(ada)
    text = client.get(f"/devices/atlas/{UUIDS[0]}").content.decode()
    assert "Take it" in text
    answer = client.post(f"/devices/atlas/{UUIDS[0]}/take", {"hours": "2", "size": "4 GiB", "why": "a notebook"})
    assert answer.status_code == 302
    job = Job.objects.get()
    assert (job.kind, job.declared_vram, job.note) == ("hold", 4 * GIB, "a notebook")
    Job.objects.filter(pk=job.pk).update(
        state="running", node="atlas", device=UUIDS[0], started_at=timezone.now() - timedelta(minutes=40),
        charges={UUIDS[0]: {"granted": GIB, "held": GIB, "at_start": GIB, "cap": None, "margin": 0}},
    )  # fmt: skip
    text = client.get(f"/devices/atlas/{UUIDS[0]}").content.decode()
    assert "taken" in text
    assert "40 min" in text
    told = client.post("/api/v1/holds", {"node": "atlas", "hours": 1}, content_type="application/json")
    assert told.status_code == 201
    assert told.json()["job"]["name"] == "hold of atlas"
    named = {"node": "atlas", "device": "GPU1", "hours": 1}
    told = client.post("/api/v1/holds", named, content_type="application/json").json()["job"]
    assert (told["name"], Job.objects.get(pk=told["id"]).device_wanted) == ("hold of gpu1", UUIDS[1])
