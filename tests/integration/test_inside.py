"""Requests of running jobs are rows that only the cycle grants."""

from __future__ import annotations

from typing import Any

import pytest

from calibration import clock
from placement import snapshots
from placement.domain.errors import NotFound, Refused
from placement.models import Device, InsideRequest, Job, Lease, Member, Node
from placement.services import admission, reserving
from placement.services.reserving import Call
from tests.integration.asking import HERE, asks, cycle, on_gpu1
from tests.integration.rows import GIB, UUIDS, a_job, a_running

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("an_account_for_everybody")]


@pytest.fixture
def job() -> Job:
    """A job on gpu1 with 13 of 24 GiB."""
    return on_gpu1()


def test_a_request_waits_until_the_cycle_grants_it_and_counts_for_its_job(job: Job) -> None:
    row = asks(job, 6, device_id=0)
    assert row.state == "waiting"
    assert not Lease.objects.exists()

    assert cycle(row).state == "granted"
    assert row.members == [
        {"uuid": UUIDS[0], "device_id": 0, "node": "atlas", "kind": "gpu", "backend": "cuda", "bytes": 6 * GIB}
    ]
    lease = Lease.objects.get()
    assert (lease.job, lease.request, lease.pool, lease.bytes, lease.promise) == (job, row, UUIDS[0], 6 * GIB, True)
    first, second = snapshots.take().running
    assert (first.job, first.device, first.more) == (job.pk, UUIDS[1], False)
    assert (second.job, second.device, second.more) == (job.pk, UUIDS[0], True)
    assert second.charges[UUIDS[0]].promise
    assert second.charges[UUIDS[0]].growth == 6 * GIB


def test_more_on_the_job_s_own_device_is_added_to_its_charge_there(job: Job) -> None:
    row = asks(job, 6, device_id=1)
    assert cycle(row).state == "granted"
    (running,) = snapshots.take().running
    charge = running.charges[UUIDS[1]]
    assert (charge.granted, charge.held, charge.growth) == (19 * GIB, 19 * GIB, 8 * GIB)


def test_the_same_key_is_the_same_request(job: Job) -> None:
    first = asks(job, 6)
    again, new = reserving.ask(job, Call("k", {"group_bytes": 1}, HERE))
    assert (again, new) == (first, False)
    assert InsideRequest.objects.count() == 1


def test_what_can_never_be_is_refused_at_once_with_the_arithmetic(job: Job) -> None:
    row = asks(job, 40)
    assert (row.state, row.code) == ("refused", "impossible")
    assert "40.0 GiB" in row.said
    assert "can give at most" in row.said
    told = reserving.answer(row)
    assert told["refusal"]["arithmetic"]
    assert told["lease"] is None

    itself = asks(job, 12, "k2", device_id=1)
    assert (itself.state, itself.code) == ("refused", "waits_for_itself")
    assert f"#{job.pk} itself holds 13.0 GiB" not in itself.said  # it may settle: it uses 11
    assert "11.0 GiB" in itself.said or "13.0 GiB" in itself.said


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"device_id": 77}, "the CUDA GPU 77, and no declared device is that"),
        ({"backend": "rocm"}, "ROCM"),
        ({"kind": "tpu", "backend": "xla"}, "TPU"),
        ({"min_devices": 4096, "max_devices": 4096}, "4096 CUDA GPUs"),
        ({"kind": "tpu", "backend": "xla", "min_devices": 2, "max_devices": 2}, "TPU"),
    ],
)
def test_what_no_device_of_the_node_is_can_never_be_and_says_what_was_asked_for(
    job: Job, asked: dict[str, Any], said: str
) -> None:
    for key, sees in (("all", None), ("one", (UUIDS[1],))):
        row = asks(job, 1, key, sees=sees, **asked)
        assert (row.state, row.code) == ("refused", "impossible")
        assert row.said.startswith("Can never be granted")
        assert said in row.said
        assert "None" not in row.said
        assert "not see" not in row.said


def test_a_request_whose_devices_are_all_taken_away_is_refused_in_words(job: Job) -> None:
    row = asks(job, 23, device_id=0)
    Device.objects.filter(uuid=UUIDS[0]).update(retired=True)
    assert cycle(row).state == "refused"
    assert row.said == "Can never be granted: none of the devices that it may have is declared on atlas."


@pytest.mark.parametrize("away", [{"tick_clock": 0.0}, {"draining": True}, {"tick_clock": None}])
@pytest.mark.parametrize("asked", [{}, {"min_devices": 2, "max_devices": 2}])
def test_nothing_is_refused_for_good_while_the_node_takes_nothing(
    job: Job, asked: dict[str, Any], away: dict[str, Any]
) -> None:
    before = asks(job, 2, "before", **asked)
    Node.objects.update(**away)
    during = asks(job, 2, "during", **asked)
    for row in (before, during):
        assert cycle(row).state == "waiting"


def test_two_threads_of_one_job_that_want_all_of_a_device_do_not_wait_for_ever(job: Job) -> None:
    first, second = asks(job, 20, "a", device_id=0), asks(job, 20, "b", device_id=0)
    assert (first.state, second.state) == ("waiting", "waiting")
    assert cycle(first).state == "granted"
    assert cycle(second).state == "refused"
    assert second.code == "waits_for_itself"
    assert "20.0 GiB" in second.said


def test_a_request_that_waits_says_why_and_is_granted_when_the_other_job_lets_go(job: Job) -> None:
    other = a_running(job.user, device=UUIDS[0], charges={}, used={})
    first = cycle(asks(other, 20, "o", device_id=0))
    row = cycle(asks(job, 6, device_id=0))
    assert row.state == "waiting"
    told = reserving.answer(row)
    assert f"#{other.pk}" in told["reasons"][0]
    assert row.code in ("booked", "no_room")

    reserving.release(other, first.pk)
    assert cycle(row).state == "granted"
    first.refresh_from_db()
    assert first.state == "released"
    assert Lease.objects.get(request=first).released_at is not None


@pytest.mark.parametrize(
    ("at", "held", "told", "small"),
    [
        pytest.param(0, 12, {"group_bytes": 20 * GIB, "device_id": 0}, 8, id="one device"),
        pytest.param(1, 3, {"group_bytes": 20 * GIB, "min_devices": 2, "max_devices": 2}, 5, id="a group"),
    ],
)
def test_a_younger_job_does_not_pass_a_request_that_has_a_plan(
    job: Job, at: int, held: int, told: dict[str, int], small: int
) -> None:
    holder = a_running(job.user, device=UUIDS[at], charges={}, used={}, time_limit_s=60.0, started_clock=clock.now())
    cycle(asks(holder, held, "o", device_id=at))
    row = cycle(asks(job, 0, **told))
    assert row.state == "waiting"
    assert f"#{holder.pk}" in row.said
    younger = a_job(
        job.user, declared_vram=small * GIB, declared_ram=GIB, device_wanted=UUIDS[at], key_workload="other"
    )
    cycle(row)
    younger.refresh_from_db()
    assert (younger.state, younger.code) == ("queued", "set_aside")
    assert f"what #{job.pk} asks for" in younger.headline


def test_a_request_is_not_set_aside_for_a_plan_that_waits_for_its_own_job(job: Job) -> None:
    """The plan would wait for the job, and the job for the plan."""
    big = a_job(job.user, declared_vram=20 * GIB, declared_ram=GIB, device_wanted=UUIDS[1], key_workload="big")
    Job.objects.filter(pk=job.pk).update(time_limit_s=600.0)
    admission.run()
    big.refresh_from_db()
    assert big.state == "queued"
    assert big.plan
    assert cycle(asks(job, 4, device_id=1)).state == "granted"


def test_a_request_is_not_set_aside_for_a_group_that_waits_for_its_own_job(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(time_limit_s=600.0)
    other = a_running(job.user, device=UUIDS[0], charges={}, used={}, time_limit_s=600.0, started_clock=clock.now())
    group = cycle(asks(other, 24, "g", min_devices=2, max_devices=2))
    assert (group.state, f"#{job.pk}" in group.said) == ("waiting", True)
    young = a_job(job.user, declared_vram=14 * GIB, declared_ram=GIB, device_wanted=UUIDS[0], key_workload="young")
    cycle(group)
    young.refresh_from_db()
    assert young.code == "set_aside"
    assert cycle(asks(job, 14, device_id=0)).state == "granted"


def test_exclusive_means_that_nobody_is_there(job: Job) -> None:
    row = cycle(asks(job, 0, device_id=0, exclusive=True))
    assert row.state == "granted"
    assert row.members[0]["bytes"] == 0
    newcomer = a_job(job.user, declared_vram=GIB, declared_ram=GIB, device_wanted=UUIDS[0], key_workload="other")
    admission.run()
    newcomer.refresh_from_db()
    assert (newcomer.state, newcomer.code) == ("queued", "exclusive_device")
    more = asks(job, 1, "k2", device_id=0)
    assert (more.state, more.code) == ("refused", "waits_for_itself")


def test_only_devices_that_the_process_sees_are_granted(job: Job) -> None:
    row = asks(job, 6, device_id=0, sees=(UUIDS[1],))
    assert (row.state, row.code) == ("refused", "not_visible")
    assert "gpu0" in row.said
    assert cycle(asks(job, 1, "k2", sees=(UUIDS[0], "GPU-other"))).members[0]["uuid"] == UUIDS[0]


def test_a_group_is_granted_whole_or_not_at_all(job: Job) -> None:
    row = cycle(asks(job, 6, min_devices=2, max_devices=2))
    assert row.state == "granted"
    assert sorted((m["uuid"], m["bytes"]) for m in row.members) == [(UUIDS[0], 3 * GIB), (UUIDS[1], 3 * GIB)]
    more = cycle(asks(job, 36, "k2", min_devices=2, max_devices=2))
    assert more.state == "refused"
    assert more.code == "waits_for_itself"
    never = asks(job, 100, "k3", max_devices=2)
    assert never.state == "refused"
    assert never.code == "impossible"


def test_a_group_takes_as_many_as_it_prefers_and_shares_by_room(job: Job) -> None:
    """The first device is empty, on the second the job has 13 of 24 GiB."""
    row = cycle(asks(job, 18, min_devices=1, max_devices=2, prefer_max=True, even=False))
    sizes = {m["uuid"]: m["bytes"] for m in row.members}
    assert sum(sizes.values()) == 18 * GIB
    assert sizes[UUIDS[0]] > 2 * sizes[UUIDS[1]] > 0
    assert [m["uuid"] for m in row.members] == list(UUIDS[:2])
    assert dict(Lease.objects.filter(request=row).values_list("pool", "bytes")) == sizes
    few = cycle(asks(job, 1, "k2", min_devices=1, max_devices=2, per_device_bytes=GIB))
    assert [m["bytes"] for m in few.members] == [2 * GIB]


def test_what_the_gate_never_gives_together_is_refused(job: Job) -> None:
    """Of MIG instances a process sees one alone."""
    for number, uuid in enumerate(UUIDS):
        Device.objects.filter(uuid=uuid).update(uuid=f"MIG-{number}")
    Job.objects.filter(pk=job.pk).update(device="MIG-1")
    row = asks(job, 2, min_devices=2, max_devices=2)
    assert (row.state, row.code) == ("refused", "impossible")
    assert "needs 2 devices of one node" in row.said


def test_what_is_no_request_is_refused_in_words(job: Job) -> None:
    for told in ({}, {"kind": "cpu", "group_bytes": 1}, {"backend": "metal", "group_bytes": 1}):
        with pytest.raises(Refused):
            reserving.ask(job, Call("bad", told, HERE))
    with pytest.raises(NotFound):
        reserving.found(job, 77)


def test_what_is_asked_for_inside_counts_under_the_owner_s_quota(job: Job) -> None:
    """13 of 20 GiB are held: 6 more fit, 3 wait for another job of theirs, 4 never fit beside what the job holds."""
    Member.objects.filter(user=job.user).update(quota_vram=20 * GIB)
    other = a_running(job.user, device="", charges={}, used={}, gpu="none")
    assert cycle(asks(job, 6, "a", device_id=0)).state == "granted"
    waits = cycle(asks(other, 3, "b", device_id=0))
    assert (waits.state, waits.code) == ("waiting", "quota")
    group = cycle(asks(other, 4, "c", min_devices=2, max_devices=2))
    assert (group.state, group.code) == ("waiting", "quota")
    never = asks(Job.objects.get(pk=job.pk), 4, "d", device_id=0)
    assert (never.state, never.code) == ("refused", "quota")
    assert "20.0 GiB" in never.said
