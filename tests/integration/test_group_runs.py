"""A group on simulated devices with real processes: what it sees, what it holds, and what its death gives back."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from placement.domain.jobs import State
from placement.models import Job, Lease, Role
from placement.selectors.asked import Asked
from placement.services import admission, cycle_row, explaining, lifecycle
from tests.integration.databases import on
from tests.integration.loop_here import GIB, Here, here, leased
from tests.integration.rows import UUIDS, a_job, a_machine, a_user
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)
PAIR = {"gpu": "group", "min_devices": 2, "max_devices": 2, "declared_vram": 4 * GIB}


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path, simulate="3x24GiB") as made:
        yield made


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_both_databases_claim_a_group_and_find_it_by_each_device(
    kind: str, request: pytest.FixtureRequest, transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on(request.getfixturevalue("postgres_url"), monkeypatch) if kind == "postgresql" else nullcontext():
        explaining.forget_all_but(())
        cycle_row.ensure()
        a_machine("testnode")
        wanted = {"min": 2, "max": 2, "prefer_max": False, "per_device": None, "group": 6 * GIB}
        job = a_job(a_user("ann", Role.ADMIN), gpu="group", devices_wanted=wanted, declared_ram=GIB, plan={})
        assert admission.run()
        job.refresh_from_db()
        assert (job.state, job.devices) == (State.ADMITTED, UUIDS)
        assert {lease.pool: lease.bytes for lease in job.leases.filter(promise=True)} == dict.fromkeys(UUIDS, 3 * GIB)
        for uuid in UUIDS:
            assert [found.pk for found in Asked(device=uuid).only(Job.objects.all(), 0)] == [job.pk]
        assert not admission.snapshots.take().waiting


def test_a_killed_group_job_gives_all_its_devices_back_and_the_next_group_starts(node: Here) -> None:
    job = node.run('echo "$TIDEGATE_DEVICE_UUIDS $CUDA_VISIBLE_DEVICES"; exec sleep 317', **PAIR)
    held = sorted(Lease.objects.filter(job=job, released_at=None).values_list("pool", flat=True))
    assert held == sorted([*job.devices, "ram"])
    log = lifecycle.run_dir_of(job) / "stdout.log"
    until(lambda: log.read_text() == f"{','.join(job.devices)} 0,1\n", 10, "what the job sees of its devices")
    wide = node.submit("exec sleep 318", **{**PAIR, "min_devices": 3, "max_devices": 3, "declared_vram": 22 * GIB})
    node.tick()
    wide.refresh_from_db()
    assert (wide.state, leased(wide)) == (State.QUEUED, 0)

    os.kill(job.child["pid"], signal.SIGKILL)
    os.kill(job.runner["pid"], signal.SIGKILL)  # and nobody is left to say so
    node.end(job)
    assert leased(job) == 0
    node.reach(wide, State.RUNNING)
    assert len(wide.devices) == 3
    assert leased(wide) == 4


def test_a_claimed_group_whose_start_was_told_nobody_starts_once(node: Here, tmp_path: Path) -> None:
    """The loop dies between its commit and its message; the next one tells it."""
    node.deliver = False
    notes = tmp_path / "starts"
    job = node.submit(f'echo "$TIDEGATE_ATTEMPT $CUDA_VISIBLE_DEVICES" >> {notes}; exec sleep 319', **PAIR)
    node.tick()
    job.refresh_from_db()
    assert (job.state, leased(job)) == (State.ADMITTED, 3)
    node.new_worker()
    node.deliver = True
    node.reach(job, State.RUNNING)
    until(lambda: notes.exists() and notes.read_text() == "1 0,1\n", 10, "its one start")
    node.tick()
    assert notes.read_text() == "1 0,1\n"
    Job.objects.filter(pk=job.pk).update(stop_reason="cancel", stop_requested_at=job.started_at)
    assert node.end(job).attempt == 1
    assert leased() == 0
