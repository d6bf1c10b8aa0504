"""Reasons on rows: at once for who is new or is held, in turn for figures that moved, one statement for equal jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from placement.models import DecisionRecord, Job, Lease, Member, Role
from placement.services import admission, cycle_row, explaining, jobs
from tests.integration.rows import UUIDS, a_job, a_machine, a_pool, a_user

pytestmark = pytest.mark.django_db
GIB = 1 << 30


@pytest.fixture(autouse=True)
def user(monkeypatch: pytest.MonkeyPatch) -> Any:
    explaining.forget_all_but(())
    cycle_row.ensure()
    a_machine("testnode")
    for uuid in UUIDS:
        a_pool("testnode", uuid, "gpu", 24 * GIB, 20 * GIB)
    monkeypatch.setattr(explaining, "_FEWEST", 2)
    monkeypatch.setattr(explaining, "_LONGEST", 0.0)
    return a_user("ann", Role.ADMIN)


def queue(user: Any, count: int, distinct: int = 1) -> list[Job]:
    """Return jobs that wait for more than is free; nothing has been said of them."""
    fields: dict[str, Any] = {"headline": "", "code": "", "decision": {}, "decided_at": None, "estimate": {}}
    return [
        a_job(user, declared_vram=10 * GIB + n % distinct, declared_ram=GIB, key_workload=f"w{n % distinct}", **fields)
        for n in range(count)
    ]


def test_whoever_is_new_has_a_reason_after_the_first_cycle_whatever_the_budget(user: Any) -> None:
    queue(user, 20, distinct=20)
    assert admission.run()
    assert not Job.objects.exclude(code="no_room").exists()
    assert DecisionRecord.objects.count() == 20


def test_equal_jobs_are_told_in_one_statement(user: Any) -> None:
    queue(user, 50)
    with CaptureQueriesContext(
        connection,
    ) as seen:
        assert admission.run()
    told = [q["sql"] for q in seen if q["sql"].startswith('UPDATE "placement_job"')]
    assert len(told) <= 2, "the head, which has a plan, and all others"
    assert len({str(job.decision["candidates"]) for job in Job.objects.all()}) == 1


def test_a_hold_shows_at_once_and_figures_in_turn(user: Any) -> None:
    made = queue(user, 12, distinct=12)
    assert admission.run()
    for uuid in UUIDS:
        a_pool("testnode", uuid, "gpu", 24 * GIB, 21 * GIB)
    jobs.hold(user, made[7].pk)

    assert admission.run()

    assert Job.objects.get(pk=made[7].pk).code == "job_held"
    moved = [room(job) for job in Job.objects.order_by("pk")].count(True)
    assert 2 <= moved <= 4, "two in turn, the one that is held"
    for _ in range(5):
        assert admission.run()
    assert all(room(job) for job in Job.objects.all())


def room(job: Job) -> bool:
    """Return whether the row tells of what is free since the figures moved."""
    return bool(max(next(iter(one["room"].values())) for one in job.decision["candidates"]) < 3 * GIB)


def test_a_process_that_knows_nothing_reads_the_history_back_in_a_few_queries(user: Any) -> None:
    queue(user, 30)
    assert admission.run()
    explaining.forget_all_but(())
    DecisionRecord.objects.update(at=timezone.now() - timedelta(seconds=60))
    with CaptureQueriesContext(connection) as seen:
        assert admission.run()
    assert DecisionRecord.objects.count() == 30, "nothing that a person would call a change"
    assert len(seen) < 40


def test_of_a_crowd_that_is_new_the_rest_follows_in_the_next_cycles(user: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "_AT_ONCE", 0.0)
    made = queue(user, 12, distinct=12)
    for told in (2, 4, 6):
        assert admission.run()
        assert list(Job.objects.filter(code="no_room").order_by("pk")) == made[:told], "oldest first, nobody twice"


def test_whoever_waits_for_a_quota_is_told_in_the_cycle_in_which_its_use_changes(user: Any) -> None:
    Member.objects.filter(user=user).update(quota_jobs=1)
    for uuid in UUIDS:
        a_pool("testnode", uuid, "gpu", 24 * GIB, 0)
    first, second, *others = queue(user, 12, distinct=12)
    assert admission.run()
    first.refresh_from_db()
    assert first.state == "admitted"
    waits = Job.objects.filter(pk__in=[job.pk for job in others])
    assert {(job.code, f"#{first.pk}" in job.headline) for job in waits} == {("quota", True)}

    Job.objects.filter(pk=first.pk).update(state="finished", outcome="completed", node="", device="", charges={})
    Lease.objects.all().delete()
    assert admission.run()

    second.refresh_from_db()
    assert second.state == "admitted"
    assert {(job.code, f"#{second.pk}" in job.headline) for job in waits.all()} == {("quota", True)}
