from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from calibration.domain.samples import RAM, PoolSample, PoolState, Reading
from calibration.models import PoolNow
from placement.domain.errors import NotFound, NotYours, Refused
from placement.models import AuditEntry, Cycle, Device, Job, Lease, Member, Node
from placement.services import nodes

pytestmark = pytest.mark.django_db
GIB = 2**30


def reading(*pools: PoolSample) -> Reading:
    ram = PoolSample(RAM, "ram", "RAM", PoolState.OK, total=64 * GIB, free=60 * GIB, used=4 * GIB)
    every = {pool.pool: pool for pool in (ram, *pools)}
    return Reading(node="atlas", boot_id="b", at=1.0, wall=1.0, pools=every, processes={})


def card(uuid: str, index: int, **fields: Any) -> PoolSample:
    base = {"state": PoolState.OK, "total": 24 * GIB, "model": "A5000", "backend": "CUDA"}
    return PoolSample(uuid, "vram", f"gpu{index}", index=index, **{**base, **fields})


def user(name: str, role: str) -> User:
    made = User.objects.create_user(name)
    Member.objects.create(user=made, role=role)
    return made


@pytest.fixture
def ann() -> User:
    return user("ann", "admin")


@pytest.fixture
def oscar() -> User:
    return user("oscar", "operator")


@pytest.fixture
def gpu0() -> Device:
    nodes.discover("atlas", reading(card("GPU-a", 0), card("GPU-b", 1)))
    PoolNow.objects.create(node="atlas", pool="GPU-a", kind="vram", name="gpu0", state="ok", total=24 * GIB)
    PoolNow.objects.create(node="atlas", pool=RAM, kind="ram", name="RAM", state="ok", total=64 * GIB)
    return Device.objects.get(uuid="GPU-a")


def lease(owner: User, device: Device, size: int, *, ended: bool = False) -> None:
    job = Job.objects.create(name="train", user=owner, cwd="/tmp", key_workload="train")
    Lease.objects.create(
        job=job, node="atlas", pool=device.uuid, kind="vram", bytes=size, released_at=timezone.now() if ended else None
    )


def wanted() -> int:
    return Cycle.objects.get_or_create(pk=1)[0].wanted


def test_the_machine_and_its_devices_are_declared_and_kept_on_record(gpu0: Device) -> None:
    assert (gpu0.name, gpu0.declared, gpu0.node.name, gpu0.model) == ("gpu0", 24 * GIB, "atlas", "A5000")
    assert AuditEntry.objects.filter(action="discover", who="tidegate").count() == 2


def test_a_second_look_writes_nothing(gpu0: Device, django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(2) as queries:
        assert nodes.discover("atlas", reading(card("GPU-a", 0), card("GPU-b", 1))) == []

    assert all(query["sql"].startswith("SELECT") for query in queries.captured_queries)


def test_a_machine_without_devices_is_declared_too() -> None:
    assert nodes.discover("atlas", reading()) == []
    assert Node.objects.get().name == "atlas"


def test_a_card_that_appears_late_asks_for_a_new_decision(gpu0: Device) -> None:
    before = wanted()

    said = nodes.discover("atlas", reading(card("GPU-a", 0), card("GPU-b", 1), card("GPU-c", 2)))

    assert said == ["gpu2 found: A5000, 24.0 GiB declared."]
    assert wanted() == before + 1


def test_after_a_new_order_a_lease_is_still_on_its_card(gpu0: Device, ann: User) -> None:
    lease(ann, gpu0, GIB)

    nodes.discover("atlas", reading(card("GPU-b", 0), card("GPU-a", 1)))

    gpu0.refresh_from_db()
    assert (gpu0.name, gpu0.index) == ("gpu0", 1)
    assert Lease.objects.get().pool == gpu0.uuid


def test_when_every_call_of_the_driver_fails_the_devices_stay(gpu0: Device) -> None:
    broken = [card(u, i, state=PoolState.UNREADABLE, total=None) for i, u in enumerate(("GPU-a", "GPU-b"))]

    assert nodes.discover("atlas", reading(*broken)) == []
    assert nodes.discover("atlas", reading()) == []
    assert Device.objects.filter(retired=False, measurable=True).count() == 2


def test_the_preview_counts_live_leases_only(gpu0: Device, ann: User) -> None:
    lease(ann, gpu0, 8 * GIB)
    lease(ann, gpu0, 6 * GIB)
    lease(ann, gpu0, 9 * GIB, ended=True)

    assert nodes.preview_device(gpu0, {"declared": 10 * GIB}) == [
        "2 jobs hold 14.0 GiB there; they go on; 4.0 GiB more than declared: nothing new starts until they end."
    ]
    gpu0.refresh_from_db()
    assert gpu0.declared == 24 * GIB


def test_a_device_is_no_longer_alone_in_what_is_said_of_a_change_that_opens_it(gpu0: Device, ann: User) -> None:
    lease(ann, gpu0, 8 * GIB)
    Job.objects.update(state="running", node="atlas", device=gpu0.uuid)
    Device.objects.update(exclusive_only=True)
    gpu0.refresh_from_db()

    alone, shared = (
        "nothing of 20.0 GiB stays for others while one has it alone.",
        "12.0 GiB of 20.0 GiB stays for others.",
    )
    assert nodes.preview_device(gpu0, {"declared": 20 * GIB})[0].endswith(alone)
    said = nodes.preview_device(gpu0, {"declared": 20 * GIB, "exclusive_only": False})
    assert said[0].endswith(shared)
    assert said[1] == "Jobs may share it from now on."
    Device.objects.update(exclusive_only=False)
    gpu0.refresh_from_db()
    assert nodes.preview_device(gpu0, {"declared": 20 * GIB, "exclusive_only": True})[0].endswith(alone)


def test_an_edit_is_stored_recorded_and_decided_on_at_once(gpu0: Device, ann: User) -> None:
    before = wanted()

    said = nodes.edit_device(ann, gpu0.pk, {"declared": 20 * GIB, "exclusive_only": True, "name": "left"})

    gpu0.refresh_from_db()
    assert (gpu0.declared, gpu0.exclusive_only, gpu0.name) == (20 * GIB, True, "left")
    assert said[0] == "20.0 GiB instead of 24.0 GiB; no job holds anything there."
    entry = AuditEntry.objects.get(action="edit_device")
    assert (entry.who, entry.detail["before"]["declared"], entry.detail["after"]["declared"]) == (
        "ann",
        24 * GIB,
        20 * GIB,
    )
    assert wanted() == before + 1


def test_an_edit_that_changes_nothing_leaves_no_record(gpu0: Device, ann: User) -> None:
    nodes.edit_device(ann, gpu0.pk, {"declared": 24 * GIB})

    assert not AuditEntry.objects.filter(action="edit_device").exists()


def test_more_than_a_readable_device_reports_is_refused_with_the_figures(gpu0: Device, ann: User) -> None:
    with pytest.raises(Refused, match=r"gpu0 has 24\.0 GiB; 25\.0 GiB cannot be declared") as refused:
        nodes.edit_device(ann, gpu0.pk, {"declared": 25 * GIB, "draining": True})

    gpu0.refresh_from_db()
    assert (list(refused.value.fields), gpu0.declared, gpu0.draining) == (["declared"], 24 * GIB, False)


def test_a_device_that_cannot_be_read_may_be_declared_from_its_data_sheet(gpu0: Device, ann: User) -> None:
    PoolNow.objects.filter(pool="GPU-a").update(state="unsupported", total=None)

    nodes.edit_device(ann, gpu0.pk, {"declared": 80 * GIB})

    assert Device.objects.get(pk=gpu0.pk).declared == 80 * GIB


def test_an_edit_of_what_somebody_else_changed_meanwhile_is_refused_by_name(gpu0: Device, ann: User) -> None:
    nodes.edit_device(user("carol", "admin"), gpu0.pk, {"declared": 12 * GIB})

    with pytest.raises(Refused, match="gpu0 of atlas was changed meanwhile by carol: declared is 12884901888 now"):
        nodes.edit_device(ann, gpu0.pk, {"declared": 20 * GIB}, expected={"declared": 24 * GIB, "draining": False})

    assert Device.objects.get(pk=gpu0.pk).declared == 12 * GIB


def test_the_name_of_another_device_is_taken(gpu0: Device, ann: User) -> None:
    with pytest.raises(Refused, match="Another device of this node is called gpu1"):
        nodes.edit_device(ann, gpu0.pk, {"name": "gpu1"})


def test_a_node_is_declared_within_what_it_has(gpu0: Device, ann: User) -> None:
    node = gpu0.node

    nodes.edit_node(ann, node.pk, {"ram_declared": 3 * GIB, "ram_high": 0.9, "ram_low": 0.8})
    node.refresh_from_db()
    assert (node.ram_declared, node.ram_high, node.ram_low) == (3 * GIB, 0.9, 0.8)

    nodes.edit_node(ann, node.pk, {"ram_declared": None})
    assert nodes.preview_node(node, {"watch_policy": "cap"}) == [
        "The watchdog stops a job there that stays above its cap, those that run now, too."
    ]
    nodes.edit_node(ann, node.pk, {"watch_policy": "cap"})
    node.refresh_from_db()
    assert (node.ram_declared, node.ram_high) == (None, 0.9)

    with pytest.raises(Refused, match=r"atlas has 64\.0 GiB; 65\.0 GiB cannot be declared"):
        nodes.edit_node(ann, node.pk, {"ram_declared": 65 * GIB})
    with pytest.raises(Refused, match="must lie below the high mark"):
        nodes.edit_node(ann, node.pk, {"ram_low": 0.95})
    with pytest.raises(Refused, match="warn, risk, cap"):
        nodes.edit_node(ann, node.pk, {"watch_policy": "kill"})


@pytest.mark.parametrize("kind", ["queue", "node", "device"])
def test_a_hold_says_who_since_until_and_why_and_ends_by_release(gpu0: Device, oscar: User, kind: str) -> None:
    row = {"queue": Cycle.objects.get(pk=1), "node": gpu0.node, "device": gpu0}[kind]
    until, before = timezone.now() + timedelta(hours=1), wanted()

    nodes.hold(oscar, kind, row.pk, until=until, why="new fans")
    row.refresh_from_db()
    assert (row.held_by, row.held_until, row.held_why) == ("oscar", until, "new fans")
    assert row.held_at is not None

    nodes.release(oscar, kind, row.pk)
    row.refresh_from_db()
    assert (row.held_by, row.held_at, row.held_until, row.held_why) == ("", None, None, "")
    assert wanted() == before + 2
    assert list(AuditEntry.objects.filter(who="oscar").values_list("action", flat=True)) == ["hold", "release"]


def test_a_hold_in_the_past_or_with_a_novel_is_refused(gpu0: Device, oscar: User) -> None:
    with pytest.raises(Refused, match="would end before it begins"):
        nodes.hold(oscar, "device", gpu0.pk, until=timezone.now())
    with pytest.raises(Refused, match="too long"):
        nodes.hold(oscar, "device", gpu0.pk, why="x" * 201)


def test_a_node_or_device_drains_and_the_queue_does_not(gpu0: Device, oscar: User) -> None:
    nodes.drain(oscar, "device", gpu0.pk, True)
    nodes.drain(oscar, "node", str(gpu0.node.pk), True)
    gpu0.refresh_from_db()
    assert gpu0.draining
    assert gpu0.node.draining

    nodes.drain(oscar, "device", gpu0.pk, False)
    gpu0.refresh_from_db()
    assert not gpu0.draining
    with pytest.raises(Refused, match="hold it instead"):
        nodes.drain(oscar, "queue", 1, True)


@pytest.mark.parametrize(("kind", "ident"), [("device", 999), ("node", "x"), ("device", None), ("card", 1)])
def test_what_is_not_there_is_not_found(oscar: User, kind: str, ident: Any) -> None:
    with pytest.raises(NotFound):
        nodes.hold(oscar, kind, ident)


def test_operators_hold_and_only_admins_declare(gpu0: Device, oscar: User) -> None:
    bob = user("bob", "submitter")

    with pytest.raises(NotYours):
        nodes.edit_device(oscar, gpu0.pk, {"declared": GIB})
    with pytest.raises(NotYours):
        nodes.edit_node(oscar, gpu0.node.pk, {"draining": True})
    for attempt in (nodes.hold, nodes.release):
        with pytest.raises(NotYours):
            attempt(bob, "queue", None)
    with pytest.raises(NotYours):
        nodes.drain(bob, "device", gpu0.pk, True)


@pytest.mark.django_db(transaction=True)
def test_many_who_change_holds_while_the_machine_is_looked_at_never_meet_a_lock() -> None:
    nodes.discover("atlas", reading(card("GPU-a", 0)))
    device, oscar = Device.objects.get(), user("oscar", "operator")
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(5):
                if number % 2:
                    nodes.hold(oscar, "device", device.pk, why=f"{number}/{turn}")
                else:
                    nodes.discover("atlas", reading(card("GPU-a", number * 5 + turn)))
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert AuditEntry.objects.filter(action="hold").count() == 20
