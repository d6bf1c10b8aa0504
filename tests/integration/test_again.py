"""Runs that are made again by themselves, what waits for them, and three fast failures that hold the rest."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from calibration import services as instrument
from calibration.domain.sediment import Row
from placement import estimates
from placement.domain.errors import NotYours
from placement.domain.jobs import State
from placement.models import AuditEntry, GroupHold, Job, Lease, Role
from placement.services import aftermath, jobs, lifecycle
from tests.integration.loop_here import GIB, Here, here
from tests.integration.rows import a_user
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path) as made:
        made.tick()
        yield made


def tries(first: Job) -> list[Job]:
    """Return a job and its further tries, in order."""
    found = [first]
    while (after := Job.objects.filter(retry_of=found[-1], retry_number__gt=0).first()) is not None:
        found.append(after)
    return found


def test_a_failure_is_run_again_after_its_wait_and_what_waits_for_it_waits_on(node: Here, tmp_path: Path) -> None:
    mark = tmp_path / "second"
    first = node.submit(f"[ -e {mark} ] || {{ touch {mark}; exit 7; }}", retry_times=3, retry_wait_s=3.0)
    dependent = node.submit("exit 0", after=((first.pk, "ok"),))
    node.end(first)
    assert (first.outcome, first.exit_code) == ("failed", 7)
    _, second = tries(first)
    assert first.evidence["further try"] == f"#{second.pk}, try 1 of 3, after 3 s"
    assert second.evidence["retry"] == f"try 1 after #{first.pk} failed"
    assert first.ended_at is not None
    assert second.not_before is not None
    assert second.not_before >= first.ended_at + timedelta(seconds=2.9)
    node.tick()
    dependent.refresh_from_db()
    assert dependent.headline == f"Waits for #{second.pk} (waiting) to complete."
    node.end(second)
    assert second.outcome == "completed"
    assert second.admitted_at is not None
    assert second.admitted_at >= second.not_before
    assert node.end(dependent).outcome == "completed"
    assert tries(first) == [first, second]
    kept = dependent.dependencies.get()
    assert (kept.named, kept.on_id) == (first.pk, second.pk)
    late = node.submit("exit 0", after=((first.pk, "ok"),))  # whoever names the first try means the last
    assert late.dependencies.get().on_id == second.pk


def test_it_is_run_again_so_often_and_no_more_and_then_says_so(node: Here) -> None:
    first = node.submit("exit 1", retry_times=2, retry_wait_s=0)
    dependent = node.submit("exit 0", after=((first.pk, "ok"),))

    def ended() -> bool:
        node.tick()
        dependent.refresh_from_db()
        return dependent.state == State.FINISHED

    until(ended, 30, "the last try to fail", 0.05)
    made = tries(first)
    assert [j.retry_number for j in made] == [0, 1, 2]
    assert made[-1].evidence["further try"] == "none: 2 of 2 further tries were made"
    assert dependent.outcome == "cancelled"
    assert made[1].name == first.name
    assert made[1].key_params == first.key_params


@pytest.mark.parametrize("state", ["queued", "running"])
def test_what_somebody_cancelled_is_not_run_again(node: Here, state: str) -> None:
    job = node.submit("trap 'exit 9' TERM; sleep 60 & wait", retry_times=3, retry_wait_s=0)
    if state == "running":
        node.reach(job, State.RUNNING)
    jobs.cancel(node.user, job.pk)
    node.end(job)
    assert tries(job) == [job]


def test_only_ends_that_were_named_are_followed(node: Here) -> None:
    job = node.end(node.submit("exit 1", retry_times=3, retry_wait_s=0, retry_on=("lost",)))
    assert tries(job) == [job]
    assert "further try" not in job.evidence


def test_the_same_end_seen_twice_makes_one_further_try(node: Here) -> None:
    job = node.end(node.submit("exit 1", retry_times=3, retry_wait_s=60))
    aftermath.of(job.pk)
    aftermath.of(job.pk)
    first, second = tries(job)
    twin = Job.objects.get(pk=second.pk)
    twin.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        twin.save(force_insert=True)
    assert first.retries.count() == 1


def test_a_start_that_could_not_be_prepared_is_followed_too(node: Here) -> None:
    node.deliver = False
    job = node.reach(node.submit("exit 0", retry_times=1, retry_wait_s=60), State.ADMITTED)
    lifecycle.start_failed(job, "could not start: no room for its directory")
    assert len(tries(job)) == 2
    assert not Lease.objects.filter(job=job, released_at=None).exists()


def a_memory_death(node: Here, charged: int, next_charge: int | None) -> Job:
    """Return a job that died of device memory, and what the instrument keeps of that."""
    node.deliver = False
    job = node.reach(
        node.submit("exit 0", gpu="one", declared_vram=charged, retry_times=2, retry_wait_s=60), State.ADMITTED
    )
    if next_charge is not None:
        row = Row(
            estimates.key_of(job), False, {"vram": charged}, "out_of_memory", at=1.0, next_charge={"vram": next_charge}
        )
        instrument.keep(row, f"job:{job.pk}", "ann", timezone.now(), [charged])
    Job.objects.filter(pk=job.pk).update(
        state="finished", outcome="out_of_memory", ended_at=timezone.now(), evidence={"memory": "vram"}
    )
    aftermath.of(job.pk)
    job.refresh_from_db()
    return job


def test_after_a_memory_death_it_is_charged_more_and_says_how_much(node: Here) -> None:
    job = a_memory_death(node, 4 * GIB, 6 * GIB)
    _, again = tries(job)
    words = f"try 1 after #{job.pk} ran out of memory; 4.0 GiB of device memory were charged then, 6.0 GiB are asked"
    assert again.evidence["retry"].startswith(words)


def test_after_a_memory_death_it_is_never_run_again_with_the_same_charge(node: Here) -> None:
    job = a_memory_death(node, 4 * GIB, None)
    assert tries(job) == [job]
    assert job.evidence["further try"] == (
        "none: the next run would be charged no more than the 4.0 GiB of device memory that were too little"
    )


def test_after_a_memory_death_that_no_device_can_give_more_than_it_says_so(node: Here) -> None:
    job = a_memory_death(node, 20 * GIB, 30 * GIB)
    assert tries(job) == [job]
    assert "gpu0 can give at most" in job.evidence["further try"]


def storm(node: Here, count: int = 5, code: int = 3) -> list[Job]:
    """Submit equal jobs of which each waits for the one before, so that they end one after the other."""
    made: list[Job] = []
    for _ in range(count):
        made.append(node.submit(f"exit {code}", after=((made[-1].pk, "any"),) if made else ()))
    return made


def test_three_fast_failures_hold_the_rest_of_the_group_and_nobody_else(node: Here) -> None:
    made = storm(node)
    node.end(made[1])
    other = node.submit("exit 4", not_before=timezone.now().timestamp() + 600)
    bob = a_user("bob", Role.ADMIN)
    theirs = node.submit("exit 3", not_before=timezone.now().timestamp() + 600)
    Job.objects.filter(pk=theirs.pk).update(user=bob)
    node.end(made[2])
    told = f"#{made[0].pk} (code 3), #{made[1].pk} (code 3) and #{made[2].pk} (code 3) of this group failed within 10 s"
    for job in made[3:]:
        job.refresh_from_db()
        assert (job.state, job.held_by) == (State.QUEUED, "tidegate")
        assert job.held_why.startswith(told)
    node.tick()
    made[3].refresh_from_db()
    assert made[3].code == "job_held"
    assert told in made[3].headline
    for job in (other, theirs):
        job.refresh_from_db()
        assert job.held_by == ""
    assert AuditEntry.objects.filter(action="hold group", who="tidegate").count() == 1

    with pytest.raises(NotYours):
        jobs.release(a_user("eve"), made[3].pk)
    assert jobs.release(a_user("opal", Role.OPERATOR), made[3].pk) == "2 jobs of this group are released."
    assert GroupHold.objects.get().released_by == "opal"
    assert node.end(made[3]).outcome == "failed"
    assert node.end(made[4]).outcome == "failed"  # the count began anew: two are no streak
    assert GroupHold.objects.count() == 1


def test_a_success_begins_the_count_anew(node: Here) -> None:
    for outcome in ("failed", "failed", "completed", "failed", "failed"):
        job = node.submit("exit 3")
        Job.objects.filter(pk=job.pk).update(state="finished", outcome=outcome, duration_s=1, ended_at=timezone.now())
        rest = node.submit("exit 3", not_before=timezone.now().timestamp() + 600)
        aftermath.of(job.pk)
        rest.refresh_from_db()
        assert rest.held_by == ""


def test_the_further_try_of_the_third_failure_is_held_with_the_others(node: Here) -> None:
    node.submit("exit 3", retry_times=9, retry_wait_s=0)

    def held() -> Job | None:
        node.tick()
        return Job.objects.filter(held_by="tidegate").first()

    job = until(held, 30, "the group to be held", 0.05)
    assert job is not None
    assert job.retry_number == 3
    assert Job.objects.count() == 4
