"""Running jobs that wait for each other: found in the same cycle, ended by the least loss, and told as it was."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from calibration import clock
from placement import inside
from placement.models import AuditEntry, InsideRequest, InsideSession, Job, Role, WaitCycle
from placement.selectors import wait_cycles
from placement.services import admission, cycle_row, holding, reserving, retention
from placement.services.reserving import Call, Step
from tests.integration.rows import GIB, UUIDS, a_machine, a_running, a_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def pair() -> tuple[Job, Job]:
    """Two jobs without a device of their own, on a machine with two of 24 GiB."""
    a_machine()
    cycle_row.ensure()
    ada = a_user("ada")
    fields = {"device": "", "gpu": "none", "charges": {}, "used": {}, "started_clock": clock.now()}
    return a_running(ada, **fields), a_running(ada, **fields)


def asks(job: Job, gib: int, device: int, key: str, restartable: bool = False) -> InsideRequest:
    told = {"group_bytes": gib * GIB, "device_id": device}
    step = Step(f"s{job.pk}", "train", restartable=True) if restartable else None
    row, _ = reserving.ask(job, Call(key, told, {"pid": 1, "started": None}, step))
    return row


def crossed(one: Job, other: Job, *, restartable: bool) -> tuple[InsideRequest, InsideRequest]:
    """Return what two jobs wait for, each holding what the other one asks for."""
    asks(one, 16, 0, "a")
    asks(other, 16, 1, "b", restartable)
    admission.run()
    assert len(inside.leases()) == 2
    first, second = asks(one, 16, 1, "c"), asks(other, 16, 0, "d", restartable)
    admission.run()
    first.refresh_from_db()
    second.refresh_from_db()
    return first, second


def test_the_restartable_one_gives_way_and_the_other_goes_on(pair: tuple[Job, Job]) -> None:
    one, other = pair
    first, second = crossed(one, other, restartable=True)
    assert (first.state, second.state) == ("waiting", "revoked")
    told = reserving.answer(second)
    assert told["revocation"]["session"] == f"s{other.pk}"
    assert told["revocation"]["execution"] == 1
    assert told["revocation"]["must_free"] == [{"uuid": UUIDS[1], "bytes": 16 * GIB}]
    assert 25 < told["revocation"]["seconds_left"] <= 30
    assert f"job {one.pk} holds 16.0 GiB on gpu0" in told["revocation"]["sentence"]
    assert [link["job"] for link in second.reasons["cycle"]["links"]] == [one.pk, other.pk]

    reserving.end(other, f"s{other.pk}", 1, "restarts")
    admission.run()
    first.refresh_from_db()
    assert first.state == "granted"
    again, new = reserving.ask(
        other, Call("e", {"group_bytes": GIB, "device_id": 0}, {}, Step(f"s{other.pk}", execution=2, restartable=True))
    )
    assert new
    assert reserving.answer(again)["notices"][0]["execution"] == 1  # of the run before: nobody heeds it


def test_a_victim_that_leaves_its_memory_behind_does_not_make_the_other_wait_for_ever(pair: tuple[Job, Job]) -> None:
    """It runs again and asks for what the other one holds, which waits for what it left behind."""
    one, other = pair
    first, second = crossed(one, other, restartable=True)
    Job.objects.filter(pk=other.pk).update(used={UUIDS[1]: 16 * GIB})
    reserving.end(other, f"s{other.pk}", 1, "restarts")
    step = Step(f"s{other.pk}", "train", execution=2, restartable=True)
    again, _ = reserving.ask(other, Call("e", {"group_bytes": 16 * GIB, "device_id": 0}, {}, step))
    admission.run()
    first.refresh_from_db(), again.refresh_from_db()
    assert (first.state, again.state) == ("waiting", "waiting"), "it may have left: no reading is newer"

    InsideRequest.objects.filter(leaving=True).update(revoke_at=timezone.now() - timedelta(seconds=1))
    admission.run()
    first.refresh_from_db(), again.refresh_from_db()
    assert (first.state, again.state) == ("waiting", "refused")
    assert f"job {other.pk} holds 16.0 GiB on gpu1" in again.said
    assert second.state == "revoked"


def test_a_victim_that_does_not_leave_loses_its_lease_at_the_deadline(pair: tuple[Job, Job]) -> None:
    one, other = pair
    first, _ = crossed(one, other, restartable=True)
    InsideRequest.objects.exclude(revoke_at=None).update(revoke_at=timezone.now() - timedelta(seconds=1))
    holding.look([one, other])
    admission.run()
    first.refresh_from_db()
    assert first.state == "granted"


def test_where_nobody_can_start_again_the_youngest_is_refused_with_the_cycle(pair: tuple[Job, Job]) -> None:
    one, other = pair
    first, second = crossed(one, other, restartable=False)
    assert (first.state, second.state, second.code) == ("waiting", "refused", "cycle")
    told = reserving.answer(second)["refusal"]
    assert f"job {one.pk}" in told["sentence"]
    assert f"job {other.pk}" in told["sentence"]


def test_what_finished_steps_keep_counts_for_their_job(pair: tuple[Job, Job]) -> None:
    """Two jobs hold 11 of 24 each from a step before, and want 11 more."""
    rows = []
    for number, job in enumerate(pair):
        asks(job, 11, 0, f"a{number}", restartable=True)
    admission.run()
    for job in pair:
        reserving.end(job, f"s{job.pk}", 1, "finished")
    for number, job in enumerate(pair):
        rows.append(asks(job, 11, 0, f"b{number}"))
    admission.run()
    for row in rows:
        row.refresh_from_db()
    assert [row.state for row in rows] == ["waiting", "refused"]
    assert InsideSession.objects.exclude(ended_at=None).count() == 2


def test_every_job_of_a_cycle_shows_it_as_it_was(pair: tuple[Job, Job], client: Client) -> None:
    one, other = pair
    first, second = crossed(one, other, restartable=True)
    row = WaitCycle.objects.get()
    assert set(row.jobs.all()) == {one, other}
    assert AuditEntry.objects.get(action="end wait cycle").subject == f"#{one.pk}, #{other.pk}"

    (drawn,) = wait_cycles.of(one)
    assert [(stop.request, stop.job, stop.mine) for stop in drawn.stops] == [
        (second.pk, other.pk, False),
        (first.pk, one.pk, True),
    ]
    victim, spared = drawn.stops
    assert (victim.holds, victim.asks, victim.after) == (("16.0 GiB on gpu1",), "16.0 GiB on gpu0", (one.pk,))
    assert (victim.word, spared.word, drawn.more) == ("run again", "went on", 0)
    assert "lost the least" in drawn.why

    client.force_login(a_user("eve", Role.VIEWER))
    for job in pair:
        page = client.get(f"/jobs/{job.pk}").content.decode()
        assert "Waited for each other" in page
        assert "16.0 GiB on gpu1" in page
    WaitCycle.objects.update(at=timezone.now() - timedelta(days=91))
    retention.prune()
    assert not WaitCycle.objects.exists()


RANKS = ({"pid": 7, "started": 70}, {"pid": 8, "started": 80})


def rank(job: Job, number: int, gib: int, key: str, device: int | None = 0, **more: int) -> InsideRequest:
    told = {"group_bytes": gib * GIB, "device_id": device, **more}
    row, _ = reserving.ask(job, Call(key, told, RANKS[number]))
    return row


def state(row: InsideRequest) -> str:
    row.refresh_from_db()
    return row.state


def test_what_another_process_of_the_job_holds_is_not_in_its_own_way(pair: tuple[Job, Job]) -> None:
    """Two ranks of one launcher: the second waits until the first lets go; the first itself would wait for ever."""
    job, _ = pair
    held = rank(job, 0, 16, "a")
    admission.run()
    assert state(held) == "granted"
    second = rank(job, 1, 16, "b")
    of_both = rank(job, 1, 40, "c", None, min_devices=2, max_devices=2)
    assert (second.state, of_both.state) == ("waiting", "waiting")
    admission.run()
    assert (state(second), state(of_both)) == ("waiting", "waiting")

    itself = rank(job, 0, 16, "d")
    assert (itself.state, itself.code) == ("refused", "waits_for_itself")
    whole = rank(job, 0, 40, "e", None, min_devices=2, max_devices=2)
    assert (whole.state, whole.code) == ("refused", "waits_for_itself")

    reserving.release(job, held.pk)
    admission.run()
    assert state(second) == "granted"
    admission.run()
    assert state(of_both) == "refused"  # now it is what the second rank itself holds


def test_ranks_that_wait_for_each_other_are_a_cycle_of_one_job(pair: tuple[Job, Job]) -> None:
    job, _ = pair
    rank(job, 0, 16, "a", 0)
    rank(job, 1, 16, "b", 1)
    admission.run()
    first, second = rank(job, 0, 16, "c", 1), rank(job, 1, 16, "d", 0)
    assert (first.state, second.state) == ("waiting", "waiting")
    admission.run()
    assert (state(first), state(second), second.code) == ("waiting", "refused", "cycle")
    assert [link["step"] for link in second.reasons["cycle"]["links"]] == ["pid 7", "pid 8"]


def test_one_alone_is_not_refused_for_what_another_process_has_alone(pair: tuple[Job, Job]) -> None:
    job, _ = pair
    rank(job, 0, 0, "a", 0, exclusive=True)
    admission.run()
    assert rank(job, 1, 1, "b").state == "waiting"
    assert rank(job, 0, 1, "c").state == "refused"


def test_what_a_group_holds_since_its_start_counts_on_each_of_its_devices() -> None:
    a_machine()
    cycle_row.ensure()
    ada = a_user("ada")
    charge = {"granted": 16 * GIB, "held": 16 * GIB, "at_start": 16 * GIB, "basis": "measured", "settled": True}
    charges = {UUIDS[0]: charge, UUIDS[1]: charge}
    group = a_running(ada, gpu="group", device=UUIDS[0], more_devices=UUIDS[1], charges=charges, used={})
    row = asks(group, 16, 1, "more")
    admission.run()
    row.refresh_from_db()
    assert (row.state, row.code) == ("refused", "waits_for_itself")
    assert f"less 16.0 GiB that #{group.pk} itself holds" in row.said
