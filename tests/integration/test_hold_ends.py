"""A person's hold ends, by its time or by an operator, while what they run uses the memory: it goes on, and counts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from calibration.domain.samples import RAM
from calibration.models import PoolNow
from placement.domain.admission.decision import Code
from placement.domain.jobs import State
from placement.domain.submitting.taken import Wish
from placement.models import Device, Job, Lease, Notice, Role
from placement.services import accounts, jobs, lifecycle, taking
from tests.integration.hardware_box import Box, Card, boxed, job_on
from tests.integration.loop_here import GIB, MIB, Here, here
from tests.integration.rows import a_user
from tests.wait import until

pytestmark = pytest.mark.django_db(transaction=True)
HELD = {RAM: 16 * MIB}


@pytest.fixture
def box(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, db: None) -> Iterator[Box]:
    with boxed(settings, tmp_path, monkeypatch) as made:
        yield made


@pytest.mark.parametrize(("part", "alone"), [(6000 * MIB, "no"), (0, "device")], ids=["a part", "the device alone"])
def test_its_processes_go_on_and_what_they_use_is_given_to_nobody(
    box: Box, client: Client, monkeypatch: pytest.MonkeyPatch, part: int, alone: str
) -> None:
    card = Card("GPU-0")
    box.look(card)
    held = {"kind": "hold", "exclusive": alone, "time_limit_s": 7200.0, "name": "hold of gpu0"}
    job = job_on(box, "GPU-0", 900, {"GPU-0": part, **HELD}, **held)
    box.proc.process(901, ppid=1)
    box.look(card)
    user = box.agent.instrument.read(set()).processes[901].user
    monkeypatch.setattr(taking, "account_of", lambda job: user)
    card.compute, card.used = [(901, 8000)], 8000
    for _ in range(2):
        box.look(card)
    job.refresh_from_db()
    assert job.used["GPU-0"] == 8000 * MIB
    assert job.charges["GPU-0"]["held"] == 8000 * MIB
    client.force_login(job.user)
    assert "hold of gpu0" in client.get("/devices/testnode/GPU-0").content.decode()

    Job.objects.filter(pk=job.pk).update(state="finished", outcome="cancelled")
    lifecycle.release(job)
    assert not Lease.objects.filter(released_at=None).exists()
    for _ in range(2):
        box.look(card)
    pool = PoolNow.objects.get(pool="GPU-0")
    assert pool.external == 8000 * MIB
    assert [who[0] for who in pool.external_who] == [901]
    page = client.get("/devices/testnode/GPU-0").content.decode()
    assert "7.8 GiB" in page
    assert user in page
    refused = box.ask((24576 - 8000) * MIB + 1)
    assert (refused.grant, refused.code) == (None, Code.NO_ROOM)
    assert box.ask((24576 - 8000) * MIB).grant is not None
    assert box.proc.root.joinpath("901").exists()


@pytest.fixture
def node(settings: Any, tmp_path: Path) -> Iterator[Here]:
    with here(settings, tmp_path) as made:
        yield made


def test_an_operator_ends_it_and_the_notebook_beside_it_lives(
    node: Here, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real processes: what waits for the hold is ended; what its person started is not touched, and seen as theirs."""
    monkeypatch.setattr(taking, "account_of", lambda job: accounts.worker_name())
    uuid = Device.objects.get().uuid
    job = node.reach(taking.take(node.user, Wish("testnode", uuid, 6 * GIB, 7200)), State.RUNNING)
    program = f"import simgpu; simgpu.Device().hold({8 * GIB}); print('has it', flush=True); input()"
    beside = {**os.environ, "PYTHONPATH": "calibration/probes", "TIDEGATE_SIMULATED": str(settings.SIMULATED_DIR)}
    notebook = subprocess.Popen(
        [sys.executable, "-S", "-c", program], env=beside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert notebook.stdout is not None
        assert notebook.stdout.readline() == "has it\n"

        def counts() -> bool:
            node.tick()
            job.refresh_from_db()
            return job.used.get(uuid) == 8 * GIB and job.charges[uuid]["held"] == 8 * GIB

        until(counts, 20, "the notebook's memory as the hold's", 0.05)
        jobs.cancel(a_user("olga", Role.ADMIN), job.pk)
        node.end(job)
        assert job.outcome == "cancelled"
        assert Notice.objects.filter(user=node.user, job=job, sentence__startswith="Cancelled by olga").exists()
        assert not Lease.objects.filter(released_at=None).exists()
        assert notebook.poll() is None
        node.tick()
        pool = PoolNow.objects.get(pool=uuid)
        assert (pool.external, pool.external_who[0][0]) == (8 * GIB, notebook.pid)
        waits = node.submit("exit 0", gpu="one", declared_vram=17 * GIB)
        node.tick()
        waits.refresh_from_db()
        assert (waits.state, waits.code) == (State.QUEUED, "no_room")
        assert str(notebook.pid) in waits.headline
    finally:
        notebook.kill()
        notebook.communicate()
    node.end(waits)
