"""Only the cycle grants, one at a time, and what it could not grant leaves nothing behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from calibration import clock
from calibration import services as instrument
from calibration.domain.samples import Attribution, PoolSample, PoolState, Reading
from calibration.models import PoolNow
from placement.domain.jobs import State
from placement.domain.submitting.submission import Submission
from placement.models import Cycle, Job, KnobOverride, Lease, Node, Role
from placement.services import admission, cycle_row, explaining, jobs
from placement.views import wake
from tests.integration.databases import on, together
from tests.integration.rows import UUIDS, a_job, a_machine, a_pool, a_user
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)

GIB = 1 << 30
MIB = 1 << 20


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "sqlite":
        _prepare()
        yield request.param
        return
    with on(request.getfixturevalue("postgres_url"), monkeypatch):
        _prepare()
        yield request.param


@pytest.fixture
def sqlite(transactional_db: None) -> None:
    _prepare()


@pytest.fixture
def postgres(transactional_db: None, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with on(postgres_url, monkeypatch):
        _prepare()
        yield


def _prepare() -> None:
    explaining.forget_all_but(())
    cycle_row.ensure()
    a_machine("testnode")


def waiting(user: Any, vram: int = 14 * GIB, **more: Any) -> Job:
    """Return a job that waits for this much of the first device; nothing has been decided about it."""
    fields = {"declared_vram": vram, "declared_ram": GIB, "device_wanted": UUIDS[0], "headline": "", "code": ""}
    return a_job(user, **{**fields, "decision": {}, "decided_at": None, "estimate": {}, **more})


def states() -> dict[int, str]:
    return dict(Job.objects.values_list("pk", "state"))


def leases_of(job: Job) -> list[tuple[str, int]]:
    return sorted(Lease.objects.filter(job=job, released_at=None).values_list("pool", "bytes"))


def test_two_passes_at_once_start_a_job_once(database: str) -> None:
    user = a_user("ann", Role.ADMIN)
    for _ in range(5):
        job = waiting(user)

        ran = together(admission.run, admission.run, admission.run)

        assert any(ran)
        job.refresh_from_db()
        assert job.state == State.ADMITTED
        assert leases_of(job) == [(UUIDS[0], 14 * GIB), ("ram", GIB)]
        Lease.objects.all().delete()
        job.delete()


def test_a_burst_of_jobs_is_admitted_as_far_as_the_sum_of_their_needs_fits(database: str) -> None:
    KnobOverride.objects.create(name="floor_vram_mib", value=0, who="ann")
    a_pool("testnode", UUIDS[0], "gpu0", 24000 * MIB, 0)
    five = [waiting(a_user("ann", Role.ADMIN), 10000 * MIB)]
    five += [waiting(five[0].user, 10000 * MIB) for _ in range(4)]

    admission.run()

    assert list(states().values()) == ["admitted"] * 2 + ["queued"] * 3
    third = Job.objects.get(pk=five[2].pk)
    checks = {c["code"]: c["figures"] for c in third.decision["candidates"][0]["checks"] if not c["ok"]}
    assert checks["no_room"]["growth"] == 20000 * MIB
    assert checks["no_room"]["room"] + checks["no_room"]["kept"] == 4000 * MIB

    # One of them has taken 6000 MiB by now; what it is expected to take still is set aside.
    a_pool("testnode", UUIDS[0], "gpu0", 24000 * MIB, 6000 * MIB)
    Job.objects.filter(pk=five[0].pk).update(used={UUIDS[0]: 6000 * MIB})
    admission.run()

    assert list(states().values()) == ["admitted"] * 2 + ["queued"] * 3
    third.refresh_from_db()
    checks = {c["code"]: c["figures"] for c in third.decision["candidates"][0]["checks"] if not c["ok"]}
    assert (checks["no_room"]["free"], checks["no_room"]["growth"]) == (18000 * MIB, 14000 * MIB)


@pytest.mark.parametrize("how", ["cancelled", "another attempt"])
def test_a_job_that_changed_under_the_plan_is_not_granted_anything(
    database: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, planned = waiting(a_user("ann", Role.ADMIN)), admission.plan

    def meanwhile(snapshot: Any) -> Any:
        decisions = planned(snapshot)
        changes = {"state": State.FINISHED, "outcome": "cancelled"} if how == "cancelled" else {"attempt": 2}
        Job.objects.filter(pk=job.pk).update(**changes)
        return decisions

    monkeypatch.setattr(admission, "plan", meanwhile)
    assert admission.run()

    job.refresh_from_db()
    assert (job.state, job.charges) == (State.FINISHED if how == "cancelled" else State.QUEUED, {})
    assert not Lease.objects.exists()


def test_a_pass_that_finds_the_cycle_taken_gives_up(database: str) -> None:
    job = waiting(a_user("ann", Role.ADMIN))
    held, release = threading.Event(), threading.Event()

    def hold() -> bool:
        with transaction.atomic():
            Cycle.objects.select_for_update().get(pk=1)
            held.set()
            return release.wait(20)

    def try_it() -> bool:
        assert held.wait(30)
        if connection.vendor == "sqlite":
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA busy_timeout = 200")
        begun = time.monotonic()
        try:
            ran = admission.run()
        finally:
            release.set()
        assert time.monotonic() - begun < 10  # of the 20 for which it is held
        return ran

    assert together(hold, try_it) == [True, False]
    job.refresh_from_db()
    assert job.state == State.QUEUED
    assert admission.run()
    job.refresh_from_db()
    assert job.state == State.ADMITTED


@pytest.mark.usefixtures("postgres")
def test_a_cycle_whose_snapshot_was_overtaken_goes_again_on_a_fresh_one(monkeypatch: pytest.MonkeyPatch) -> None:
    job, planned, calls = waiting(a_user("ann", Role.ADMIN)), admission.plan, []

    def meanwhile(snapshot: Any) -> Any:
        calls.append(snapshot)
        if len(calls) == 1:  # somebody else commits a change of the same row while the first plan is made
            together(lambda: Job.objects.filter(pk=job.pk).update(note="changed"))
        return planned(snapshot)

    monkeypatch.setattr(admission, "plan", meanwhile)
    assert admission.run()

    job.refresh_from_db()
    assert (len(calls), job.state, job.note) == (2, State.ADMITTED, "changed")
    assert len(leases_of(job)) == 2


@pytest.mark.usefixtures("postgres")
def test_a_holder_that_overslept_starts_nothing_when_it_wakes(monkeypatch: pytest.MonkeyPatch) -> None:
    job, planned = waiting(a_user("ann", Role.ADMIN)), admission.plan

    def asleep(snapshot: Any) -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SET idle_in_transaction_session_timeout = '200ms'")
        until(lambda: together(admission.run) == [True], 20, "another pass to take the cycle over", 0.1)
        Job.objects.filter(pk=job.pk).exists()  # the sleeper goes on, in the middle of its pass
        return planned(snapshot)

    def only_here(snapshot: Any) -> Any:
        return asleep(snapshot) if threading.current_thread() is threading.main_thread() else planned(snapshot)

    monkeypatch.setattr(admission, "plan", only_here)
    with pytest.raises(DatabaseError):
        admission.run()
    connection.close()

    job.refresh_from_db()
    assert job.state == State.ADMITTED  # by the other one
    assert len(leases_of(job)) == 2


@pytest.mark.parametrize("what", ["pool", "node", "cycle", "another boot"])
def test_an_age_below_zero_or_of_another_boot_is_stale(sqlite: None, what: str) -> None:
    job, ahead = waiting(a_user("ann", Role.ADMIN)), clock.now() + 3600
    if what == "pool":
        PoolNow.objects.filter(pool=UUIDS[0]).update(read_at=ahead)
    elif what == "another boot":
        PoolNow.objects.filter(pool=UUIDS[0]).update(epoch="before the reboot")
    elif what == "node":
        Node.objects.update(tick_clock=ahead)
    else:
        Cycle.objects.update(began_clock=ahead, epoch=clock.epoch(), wanted=3, done=3)

    assert admission.run_if_due()

    job.refresh_from_db()
    expected = {"pool": "stale_reading", "another boot": "no_reading", "node": "node_stale", "cycle": ""}
    assert job.code == expected[what]
    assert (job.state == State.ADMITTED) is (what == "cycle")


def test_twenty_threads_submit_claim_and_cancel_while_readings_are_written(sqlite: None, settings: Any) -> None:
    settings.NODE = "testnode"
    user, over, written = a_user("ann", Role.ADMIN), threading.Event(), [0]
    until_at = time.monotonic() + 5

    def sample() -> int:
        while not over.wait(0.05):
            instrument.store_reading(*_reading(), (), {}, clock.now())
            written[0] += 1
        return 0

    def person(number: int) -> int:
        made = 0
        try:
            while time.monotonic() < until_at:
                asked = Submission(name="t", command=f"true {number} {made}", cwd="/tmp", declared_ram=MIB, gpu="none")
                job = jobs.submit(user, asked)
                admission.run_if_due()
                jobs.cancel(user, job.pk)
                made += 1
        finally:
            if number == 0:
                over.set()
        return made

    people = [lambda number=number: person(number) for number in range(20)]
    made = together(sample, *people)

    assert all(count > 0 for count in made[1:])
    assert written[0] > 3
    assert Job.objects.count() == sum(made)
    assert not Job.objects.filter(state=State.QUEUED).exists()
    assert not Job.objects.filter(state=State.ADMITTED, stop_requested_at=None).exists()
    claimed = Job.objects.filter(state=State.ADMITTED)
    assert Lease.objects.count() == claimed.count()  # one pool each, granted once


def _reading() -> tuple[Reading, Attribution, dict[str, int | None]]:
    at = time.monotonic()
    ram = PoolSample(
        pool="ram", kind="ram", name="RAM", state=PoolState.OK, total=64 * GIB, free=56 * GIB, used=8 * GIB, read_at=at
    )
    reading = Reading("testnode", clock.boot_id(), at, time.time(), {"ram": ram}, {})
    return reading, Attribution({}, {}, {}, {}, {}, {}), {"ram": ram.free}


@pytest.mark.parametrize("commits", [True, False])
def test_a_wake_follows_the_commit_and_a_commit_that_fails_sends_none(
    database: str, commits: bool, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.NODE = "testnode"
    sent: list[int] = []
    monkeypatch.setattr("placement.wakes.wake_all", lambda: sent.append(Job.objects.count()))
    user = a_user("ann", Role.ADMIN)
    asked = Submission(name="t", command="true", cwd="/tmp", declared_ram=MIB, gpu="none")
    try:
        with transaction.atomic():
            job = jobs.submit(user, asked)
            wake.soon()
            assert sent == []
            assert together(lambda: Job.objects.filter(pk=job.pk).exists()) == [False]
            if not commits:
                raise _Failed
    except _Failed:
        assert (sent, Job.objects.count()) == ([], 0)
    else:
        assert sent == [1]  # whoever is woken finds the row


class _Failed(Exception):
    pass
