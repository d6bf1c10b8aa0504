"""A device is lost, or taken out, under a running group and under a hold: who has it keeps it, and nobody joins."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from calibration.domain.samples import RAM
from placement.domain.admission.decision import Code
from placement.models import Job, Lease
from placement.services import lifecycle
from tests.integration.hardware_box import Box, Card, boxed, job_on
from tests.integration.loop_here import MIB
from tests.integration.rows import GIB

pytestmark = pytest.mark.django_db
HOWS = ("the driver says so", "it is not there any more")


@pytest.fixture
def box(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, db: None) -> Iterator[Box]:
    with boxed(settings, tmp_path, monkeypatch) as made:
        yield made


class Machine:
    """Three cards, of which the first is lost in one way or the other."""

    def __init__(self, box: Box, how: str) -> None:
        self.box, self.how = box, how
        self.cards = [Card(f"GPU-{number}") for number in range(3)]
        self.there = list(self.cards)
        box.look(*self.there)

    def lose(self) -> None:
        if self.how == HOWS[0]:
            self.cards[0].lost = True
        else:
            self.there = self.cards[1:]

    def comes_back(self) -> None:
        self.cards[0].lost = False
        self.there = list(self.cards)
        self.box.agent = self.box.worker()  # the probe looks for a lost one again after a while

    def look(self, job: Job) -> None:
        for _ in range(2):
            self.box.look(*self.there)
        job.refresh_from_db()


def live(job: Job) -> list[tuple[str, int]]:
    return sorted(Lease.objects.filter(job=job, released_at=None).values_list("pool", "bytes"))


@pytest.mark.parametrize("how", HOWS)
def test_under_a_running_group(box: Box, how: str, client: Client) -> None:
    at = Machine(box, how)
    for card in at.cards[:2]:
        card.compute, card.used = [(900, 3000)], 3000
    charges = {"GPU-0": 4000 * MIB, "GPU-1": 4000 * MIB, RAM: GIB}
    job = job_on(box, "GPU-0", 900, charges, more_devices="GPU-1", gpu="group")
    at.look(job)
    assert job.used["GPU-0"] == 3000 * MIB
    at.lose()
    at.look(job)
    assert job.state == "running"
    assert job.stop_requested_at is None
    assert live(job) == sorted(charges.items())
    assert any("its device gpu0 is lost" in flag for flag in job.flags)
    assert (job.used.get("GPU-0"), job.used["GPU-1"]) == (None, 3000 * MIB)
    client.force_login(job.user)
    assert "its device gpu0 is lost" in client.get(f"/jobs/{job.pk}").content.decode()

    decision = box.ask(GIB, 0, *at.there, device="GPU-0")
    assert (decision.code, decision.grant) == (Code.DEVICE_LOST, None)
    beside = box.ask(20000 * MIB, 0, *at.there, device="GPU-1")
    assert beside.grant is not None, "the rest of the other member is for others as before"
    assert box.ask(21000 * MIB, 0, *at.there, device="GPU-1").grant is None

    Job.objects.filter(pk=job.pk).update(state="finished", outcome="failed")
    lifecycle.release(job)
    assert live(job) == []
    for card in at.cards:
        card.compute, card.used = [], 0
    at.comes_back()
    assert box.ask(GIB, 0, *at.there, device="GPU-0").grant is not None


@pytest.mark.parametrize("how", HOWS)
def test_under_a_hold(box: Box, how: str) -> None:
    """Nobody can tell whether its person uses it, so it is not ended as unused; its time ends it."""
    at = Machine(box, how)
    at.cards[0].compute, at.cards[0].used = [(900, 3000)], 3000
    held = {"kind": "hold", "exclusive": "device", "time_limit_s": 86400.0}
    job = job_on(box, "GPU-0", 900, {"GPU-0": 0, RAM: 16 * MIB}, **held)
    at.look(job)
    at.lose()
    long_ago = timezone.now() - timedelta(hours=5)
    Job.objects.filter(pk=job.pk).update(started_at=long_ago, taken_used_at=long_ago)
    at.look(job)
    assert (job.state, job.stop_requested_at) == ("running", None)
    assert not [flag for flag in job.flags if "soon ends" in flag]
    assert live(job) == [("GPU-0", 0), ("ram", 16 * MIB)]
    assert box.ask(GIB, 0, *at.there, device="GPU-0").grant is None
    at.comes_back()
    at.look(job)
    assert job.stop_requested_at is None
    assert job.used["GPU-0"] == 3000 * MIB
