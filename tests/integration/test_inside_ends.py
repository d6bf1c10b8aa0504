"""Leases of running jobs end with their holders, and what was taken back counts until its memory is gone."""

from __future__ import annotations

import subprocess
from datetime import timedelta

import pytest
from django.utils import timezone

from placement import inside, snapshots
from placement.models import InsideRequest, InsideSession, Job
from placement.runner.identity import identify, read_boot_id
from placement.services import holding, reserving
from placement.services.ending import release as release_all
from placement.services.reserving import Step
from tests.integration.asking import DEAD, asks, cycle, on_gpu1
from tests.integration.rows import GIB, UUIDS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("an_account_for_everybody")]


@pytest.fixture
def job() -> Job:
    """A job on gpu1 with 13 of 24 GiB."""
    return on_gpu1()


def test_a_dead_process_holds_nothing(job: Job) -> None:
    held, waits = cycle(asks(job, 20, "a", device_id=0, process=DEAD)), asks(job, 1, "b", process=DEAD)
    alive = cycle(asks(job, 1, "c", device_id=0))
    assert (held.state, alive.state) == ("granted", "granted")

    assert holding.look([job]) >= 1
    for row in (held, waits, alive):
        row.refresh_from_db()
    assert held.state == "released"
    assert alive.state == "granted"
    assert waits.state in ("withdrawn", "released")
    assert list(inside.promised(inside.leases())[job.pk].values()) == [GIB]


def test_a_process_of_another_pid_namespace_is_not_taken_for_dead(job: Job) -> None:
    row = cycle(asks(job, 6, process={**DEAD, "namespace": "pid:[1]"}, device_id=0))
    holding.look([job])
    row.refresh_from_db()
    assert row.state == "granted"


def test_a_process_in_a_container_is_known_by_its_number_there_and_holds_nothing_once_it_is_gone(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            here = identify(child.pid, read_boot_id())
            assert here is not None
            monkeypatch.setattr(holding, "own_number", lambda pid: {child.pid: 5}.get(pid, pid))
            inside_it = {"pid": 5, "started": here.start_ticks, "boot": here.boot_id, "namespace": "pid:[1]"}
            row = cycle(asks(job, 6, process=inside_it, device_id=0))
            holding.look([job])  # no reading saw it yet
            job.members = [here._asdict()]
            holding.look([job])
            row.refresh_from_db()
            assert row.state == "granted"
        finally:
            child.kill()
    job.members = []
    assert holding.look([job]) == 1
    row.refresh_from_db()
    assert row.state == "released"
    assert not holding.look([job])
    assert not holding._elsewhere


def test_the_end_of_the_job_releases_all_but_what_an_artifact_holds(job: Job) -> None:
    held, kept = cycle(asks(job, 6, "a", device_id=0)), cycle(asks(job, 7, "b", device_id=0))
    reserving.outlive(job, kept.pk, "index", 3600)
    Job.objects.filter(pk=job.pk).update(state="finished", outcome="completed")
    release_all(job)
    held.refresh_from_db(), kept.refresh_from_db()
    assert (held.state, kept.state) == ("released", "granted")
    (left,) = snapshots.take().running
    assert (left.job, left.more, left.charges[UUIDS[0]].held) == (job.pk, True, 7 * GIB)

    InsideRequest.objects.filter(pk=kept.pk).update(outlives=timezone.now() - timedelta(seconds=1))
    holding.look([])
    assert not inside.leases()
    assert not snapshots.take().running


def test_the_leases_of_a_step_pass_to_its_process_when_it_ends(job: Job) -> None:
    step = Step("s1", "train", restartable=True)
    held, waits = cycle(asks(job, 6, "a", device_id=0, step=step)), asks(job, 9, "b", device_id=0, step=step)
    reserving.end(job, "s1", 1, "finished")
    held.refresh_from_db(), waits.refresh_from_db()
    assert (held.state, waits.state) == ("granted", "withdrawn")
    assert held.session.key.startswith("process:")
    assert InsideSession.objects.get(key="s1").ended_at is not None


def test_a_lease_that_is_taken_back_is_announced_and_gone_at_its_deadline(job: Job) -> None:
    row = cycle(asks(job, 6, device_id=0))
    holding.revoke(row, "olga", 30)
    row.refresh_from_db()
    (told,) = reserving.answer(row)["notices"]
    assert told["lease"] == row.pk
    assert 28 < told["seconds_left"] <= 30
    assert "olga" in told["sentence"]
    assert told["must_free"] == [{"uuid": UUIDS[0], "bytes": 6 * GIB}]
    assert not told["final"]

    InsideRequest.objects.filter(pk=row.pk).update(revoke_at=timezone.now() - timedelta(seconds=1))
    holding.look([job])
    row.refresh_from_db()
    assert row.state == "revoked"
    assert not inside.leases()
    assert reserving.answer(row)["revocation"]["final"]
