"""Jobs that wait for jobs, times, turns and quotas, with real runners: who starts when, and who never does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from placement import snapshots
from placement.domain.errors import Infeasible, NotYours, Refused
from placement.domain.jobs import State
from placement.models import Dependency, Job, JobArray, Role
from placement.services import admission, arrays, jobs, lifecycle, members
from tests.integration.loop_here import GIB, MIB, Here, here
from tests.integration.rows import a_user
from tests.machine_pace import slowness
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path) as made:
        made.tick()
        yield made


def after(*named: tuple[int, str]) -> dict[str, Any]:
    return {"after": named}


def test_after_ok_waits_starts_and_is_ended_with_all_behind_it_when_it_can_not_be_met(
    node: Here, tmp_path: Path
) -> None:
    first = node.run(f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done")
    second = node.submit("exit 3", **after((first.pk, "ok")))
    third = node.submit("exit 0", **after((second.pk, "ok")))
    fourth = node.submit("exit 0", **after((third.pk, "any")))
    on_failure = node.submit("exit 0", **after((second.pk, "failed"), (first.pk, "any")))
    node.tick()
    second.refresh_from_db()
    assert (second.state, second.code) == (State.QUEUED, "depends")
    assert second.headline == f"Waits for #{first.pk} (running) to complete."
    (tmp_path / "go").touch()
    assert node.end(first).outcome == "completed"
    assert node.end(second).outcome == "failed"
    assert node.end(on_failure).outcome == "completed"
    third.refresh_from_db()
    assert (third.state, third.outcome, third.admitted_at) == (State.FINISHED, "cancelled", None)
    assert third.sentence == (
        f"#{third.pk} can never start: it waits for #{second.pk} to complete, and #{second.pk} failed."
    )
    assert third.evidence["depends"] == {"job": f"#{second.pk}", "was to": "complete", "outcome": "failed"}
    assert node.end(fourth).outcome == "completed"  # "any" takes a cancelled end, too
    assert on_failure.started_at is not None
    assert second.ended_at is not None
    assert on_failure.started_at >= second.ended_at - timedelta(seconds=0.01)


def test_a_whole_chain_of_ok_falls_in_one_cycle(node: Here) -> None:
    chain = [node.submit("sleep 60")]
    for _ in range(5):
        chain.append(node.submit("exit 0", **after((chain[-1].pk, "ok"))))
    jobs.cancel(node.user, chain[0].pk)
    node.tick()
    assert set(Job.objects.values_list("state", "outcome")) == {("finished", "cancelled")}


def test_a_wrong_name_is_refused_beside_its_field_and_nothing_is_stored(node: Here) -> None:
    failed = node.end(node.submit("exit 1"))
    for named, words in (((999, "ok"), "There is no job #999"), ((failed.pk, "ok"), "it failed already")):
        with pytest.raises(Refused) as refused:
            node.submit("exit 0", **after(named))
        assert words in refused.value.fields["after"]
    assert Job.objects.count() == 1
    assert node.end(node.submit("exit 0", **after((failed.pk, "failed")))).outcome == "completed"


def test_somebody_elses_job_may_be_waited_for(node: Here) -> None:
    theirs = node.submit("exit 0")
    bob = a_user("bob", Role.ADMIN)
    node.user = bob
    assert node.end(node.submit("exit 0", **after((theirs.pk, "ok")))).outcome == "completed"


def test_a_repetition_waits_for_the_repetition_of_what_it_waited_for(node: Here) -> None:
    first = node.end(node.submit("exit 1"))
    second = node.submit("exit 0", **after((first.pk, "any")))
    second = node.end(second)
    Dependency.objects.update(when="ok")  # as if it had been asked for
    with pytest.raises(Refused, match="run it again first"):
        jobs.retry(node.user, second.pk)
    again = jobs.retry(node.user, first.pk)
    repeated = jobs.retry(node.user, second.pk)
    assert list(repeated.dependencies.values_list("on_id", "when")) == [(again.pk, "ok")]


def test_not_before_its_time_and_then_at_once(node: Here) -> None:
    at = time.time() + 2.5
    job = node.submit("exit 0", not_before=at)
    node.tick()
    job.refresh_from_db()
    assert (job.state, job.code) == (State.QUEUED, "not_before")
    assert job.headline.startswith("Not before ")
    node.end(job)
    assert job.admitted_at is not None
    assert at <= job.admitted_at.timestamp() < at + 2


def test_an_array_runs_as_many_as_it_may_knows_its_indices_and_is_learned_as_one(node: Here, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    command = (
        f"echo {{index}} $TIDEGATE_ARRAY_INDEX $TIDEGATE_ARRAY_SIZE $TIDEGATE_ARRAY_ID > {out}/$TIDEGATE_ARRAY_INDEX; "
        "sleep 0.3"
    )
    first = node.submit(command, array=5, array_limit=2)
    array = JobArray.objects.get()
    most = 0

    def done() -> bool:
        nonlocal most
        node.tick()
        most = max(most, Job.objects.filter(state__in=("admitted", "running")).count())
        return not Job.objects.exclude(state=State.FINISHED).exists()

    until(done, 40, "the array to end", 0.05)
    assert most == 2
    assert {f.name: f.read_text() for f in out.iterdir()} == {str(i): f"{i} {i} 5 {array.pk}\n" for i in range(5)}
    assert Job.objects.values("key_workload", "key_params", "key_script", "key_fingerprint").distinct().count() == 1
    assert (first.array_index, array.size, array.limit) == (0, 5, 2)
    again = jobs.retry(node.user, Job.objects.get(array_index=3).pk)
    assert (again.array_id, again.array_index, again.key_params) == (array.pk, 3, first.key_params)


def test_the_limit_is_the_reason_and_an_array_is_cancelled_as_a_whole(node: Here) -> None:
    first = node.submit("sleep 60", array=3, array_limit=1)
    node.reach(first, State.RUNNING)
    second = Job.objects.get(array_index=1)
    assert (second.code, second.headline) == (
        "array_limit",
        f"Array {first.array_id} runs 1 of at most 1 at once: #{first.pk}.",
    )
    with pytest.raises(NotYours):
        arrays.cancel(a_user("eve"), first.array_id)
    said = arrays.cancel(a_user("opal", Role.OPERATOR), first.array_id)
    assert said == f"Array {first.array_id}: 2 that waited are cancelled, 1 is being stopped."
    node.end(first)
    assert set(Job.objects.values_list("outcome", flat=True)) == {"cancelled"}


def test_a_large_array_is_stored_quickly_and_its_head_alone_goes_before_the_gate(node: Here) -> None:
    began = time.monotonic()
    first = node.submit("exit 0", array=10_000, array_limit=1, not_before=time.time() + 3600)
    took = time.monotonic() - began
    assert Job.objects.count() == 10_000
    assert took < 20 * slowness(), f"storing took {took:.1f} s"
    began = time.monotonic()
    assert len(snapshots.take().waiting) == 100
    assert admission.run()
    took = time.monotonic() - began
    assert took < 5 * slowness(), f"a cycle took {took:.1f} s"
    last = Job.objects.get(array_index=9_999)
    assert last.code == "array_limit"
    assert last.headline.startswith("Waits its turn in an array of 10,000")
    arrays.cancel(node.user, first.array_id)
    with pytest.raises(Refused) as refused:
        node.submit("exit 0", array=10_001)
    assert "1 to 10,000 members" in refused.value.fields["array"]


def test_a_quota_holds_what_a_person_has_running_and_names_it(node: Here) -> None:
    ada, boss = a_user("ada", Role.ADMIN), node.user
    members.set_quota(boss, ada, jobs=None, vram=8 * GIB, ram=None)
    node.user = ada
    card = {"gpu": "one", "declared_ram": 32 * MIB}
    first = node.run("sleep 60", declared_vram=6 * GIB, **card)
    second = node.submit("sleep 61", declared_vram=3 * GIB, **card)
    third = node.submit("sleep 62", declared_vram=2 * GIB, **card)
    node.reach(third, State.RUNNING)
    second.refresh_from_db()
    assert (second.state, second.code) == (State.QUEUED, "quota")
    assert second.headline == (
        f"8.0 GiB of ada's 8.0 GiB of device memory are held by #{first.pk} and #{third.pk}; this needs 3.0 GiB."
    )
    with pytest.raises(Infeasible) as refused:
        node.submit("sleep 63", declared_vram=9 * GIB, **card)
    assert refused.value.sentence.startswith("Can never start under ada's quota of 8.0 GiB of device memory")
    members.set_quota(boss, ada, jobs=None, vram=0, ram=None)
    node.reach(second, State.RUNNING)


def test_a_quota_for_everybody_is_a_knob_and_counts_starts_of_the_same_cycle(node: Here, settings: Any) -> None:
    settings.KNOB_OVERRIDES = {**settings.KNOB_OVERRIDES, "quota_jobs": 2}
    made = [node.submit("sleep 60") for _ in range(4)]
    admission.run()
    assert Job.objects.filter(state=State.ADMITTED).count() == 2
    made[2].refresh_from_db()
    assert made[2].headline == f"ann runs 2 of 2 jobs allowed at once: #{made[0].pk} and #{made[1].pk}."
    for job in made[:2]:
        lifecycle.start_failed(job, "not today")
    assert timezone.now() > made[2].submitted_at
