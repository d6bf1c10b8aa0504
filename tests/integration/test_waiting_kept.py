"""Waiting jobs are kept between snapshots: never staler than their row, and no work where nothing changed."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from calibration import clock
from calibration import services as instrument
from placement import snapshots
from placement.models import Job, Member, Workload
from placement.waiting import Queue
from tests.integration.rows import GIB, a_job, a_machine, a_user

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    made = Queue()
    monkeypatch.setattr(snapshots, "_queue", made)
    return made


def seen() -> list[Any]:
    return list(snapshots.take().waiting)


def test_an_unchanged_job_is_the_same_object_and_costs_no_query() -> None:
    a_machine()
    ada = a_user("ada")
    a_job(ada, workload=Workload.objects.create(name="first"))
    one = seen()
    with CaptureQueriesContext(connection) as few:
        assert seen()[0] is one[0]
    for n in range(20):
        a_job(ada, name=f"more {n}", workload=Workload.objects.create(name=f"w{n}"))
    seen()
    with CaptureQueriesContext(connection) as many:
        assert len(seen()) == 21
    assert len(many) == len(few), "a queued job costs a query of its own"


@pytest.mark.parametrize(
    "change",
    [
        {"priority": 5}, {"attempt": 2}, {"declared_vram": 3 * GIB}, {"key_params": "x"}, {"time_limit_s": 60.0},
        {"plan": {"node": "atlas", "device": "GPU-aaaa", "at": 5.0, "epoch": clock.epoch()}}, {"gpu": "none"},
        {"held_by": "bob", "held_at": timezone.now()}, {"name": "other"}, {"device_wanted": "GPU-aaaa"},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_a_changed_row_is_seen(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine()
    job, other = (a_job(a_user(name), declared_vram=GIB) for name in ("ada", "bob"))
    before = {w.job: w for w in seen()}
    Job.objects.filter(pk=job.pk).update(**change)
    after = {w.job: w for w in seen()}
    assert after[job.pk] != before[job.pk]
    assert after[other.pk] is before[other.pk]
    monkeypatch.setattr(snapshots, "_queue", Queue())
    afresh = next(w for w in seen() if w.job == job.pk)
    assert replace(afresh, waited=0) == replace(after[job.pk], waited=0)


def test_what_a_cycle_writes_of_its_answer_makes_nothing_anew() -> None:
    a_machine()
    job = a_job(a_user("ada"))
    before = seen()
    Job.objects.filter(pk=job.pk).update(decision={"x": 1}, headline="y", decided_at=timezone.now(), code="no_room")
    assert seen()[0] is before[0]


def test_a_users_row_and_a_workloads_hint_are_seen() -> None:
    a_machine()
    ada = a_user("ada")
    work = Workload.objects.create(name="w", hint_vram=2 * GIB)
    a_job(ada, workload=work)
    assert seen()[0].estimate.pools["vram"].need == 2 * GIB
    Workload.objects.filter(pk=work.pk).update(hint_vram=5 * GIB)
    assert seen()[0].estimate.pools["vram"].need == 5 * GIB
    get_user_model().objects.filter(pk=ada.pk).update(username="eve")
    assert seen()[0].user == "eve"
    Member.objects.filter(user=ada).update(quota_jobs=3)
    conditions = seen()[0].conditions
    assert conditions is not None
    assert conditions.quota is not None
    assert conditions.quota.jobs == 3


def test_a_new_version_of_what_was_learned_is_seen() -> None:
    a_machine()
    a_job(a_user("ada"))
    before = seen()[0]
    instrument.raise_version()
    assert seen()[0] is not before


def test_who_lacks_an_account_and_whose_hold_is_over_is_asked_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine()
    until = timezone.now() + timedelta(seconds=60)
    a_job(a_user("ada"), held_by="bob", held_at=timezone.now(), held_until=until)
    assert snapshots.take(no_account=lambda user: f"{user} has none").waiting[0].no_account == "ada has none"
    (now,) = seen()
    assert (now.no_account, now.hold is None) == ("", False)
    wall = time.time()
    monkeypatch.setattr(snapshots.time, "time", lambda: wall + 61)
    (later,) = seen()
    assert later.hold is None
    assert later.waited - now.waited == pytest.approx(61, abs=1)


def test_a_job_that_started_is_gone_and_order_follows_priority() -> None:
    a_machine()
    ada = a_user("ada")
    first, second, third = (a_job(ada, name=str(n)) for n in range(3))
    assert [w.job for w in seen()] == [first.pk, second.pk, third.pk]
    Job.objects.filter(pk=third.pk).update(priority=1)
    Job.objects.filter(pk=first.pk).update(state="running", node="atlas")
    assert [w.job for w in seen()] == [third.pk, second.pk]


@pytest.mark.django_db(transaction=True)
def test_a_row_that_changed_while_it_was_read_and_changed_back_is_not_kept(queue: Queue) -> None:
    a_machine()
    job = a_job(a_user("ada"), priority=1)
    real = queue._read

    def changed_between(wanted: list[int]) -> Any:
        Job.objects.filter(pk=job.pk).update(priority=9)
        return real(wanted)

    queue._read = changed_between  # type: ignore[method-assign]
    assert seen()[0].priority == 9
    queue._read = real  # type: ignore[method-assign]
    Job.objects.filter(pk=job.pk).update(priority=1)
    assert seen()[0].priority == 1
    assert seen()[0] is seen()[0]
