"""What no process list explains, from the readings of a run to the note beside what is learned from it."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from calibration import rows
from calibration.domain.attribution import attribute
from calibration.domain.knobs import Knobs
from calibration.domain.samples import RAM, Claim, Identity, PoolSample, PoolState, ProcessSample, Reading
from placement import estimates
from placement.models import Job
from placement.services.learning import Windows, owner
from tests.integration.rows import a_user

pytestmark = pytest.mark.django_db
MIB = 1 << 20
CARD, KNOBS = "GPU-0", Knobs.defaults()
BEFORE, DURING = 4000, 12900  # MiB that nobody explains, before the run and while it runs


def looked_at(job: Job, levels: list[tuple[int, int]]) -> Any:
    """Return what is kept of a run whose readings showed (its own MiB, MiB that nobody explains)."""
    windows, claim = Windows(), Claim(owner(job), roots=(Identity("boot", 700, 50),))
    for second, (own, rest) in enumerate(levels, start=1):
        at, used = 1000.0 + second, own + 2500 + rest
        listed = ((700, own * MIB),) if own else ()
        card = PoolSample(
            CARD, "vram", "gpu0", PoolState.OK, 40000 * MIB, (40000 - 600 - used) * MIB, used * MIB, 600 * MIB,
            read_at=at, processes=(*listed, (710, 2500 * MIB)),
        )  # fmt: skip
        ram = PoolSample(RAM, "ram", "RAM", PoolState.OK, 64 << 30, 60 << 30, 4 << 30, read_at=at)
        table = {pid: ProcessSample(pid, 1, 50, ram=MIB) for pid in ([700] if own else []) + [710]}
        reading = Reading("n", "boot", at, 1e9 + at, {RAM: ram, CARD: card}, table)
        windows.observe(job, reading, attribute(reading, [claim]), KNOBS, rows.version())
    return windows.close(
        job, 1000.0 + len(levels), timezone.now(), "completed", KNOBS,
        died_of={}, receipt=None, device_total=40000 * MIB, duration=None,
    )  # fmt: skip


@pytest.fixture
def job() -> Job:
    charge = {"granted": 6000 * MIB, "held": 6000 * MIB, "at_start": 6000 * MIB, "cap": None, "margin": 0}
    charge |= {"basis": "declared", "free_before": 32900 * MIB, "unexplained_before": BEFORE * MIB}
    return Job.objects.create(
        user=a_user("ada"), gpu="one", node="n", device=CARD, state="running", started_at=timezone.now(),
        key_workload="render", charges={CARD: charge, RAM: {**charge, "granted": MIB}},
    )  # fmt: skip


def test_what_came_and_went_with_a_run_stands_beside_its_figure(job: Job) -> None:
    kept = looked_at(job, [(4000, DURING)] * 9 + [(0, BEFORE)])
    assert kept.peaks["vram"] == 4000 * MIB
    assert kept.lower_bound_note == "vram: lower bound, up to 8.7 GiB more began with this job"
    again = estimates.estimate_of(Job(user=job.user, gpu="one", key_workload="render"), rows.version(), KNOBS)
    assert again.pools["vram"].need == 4000 * MIB
    assert again.pools["vram"].notes == ("lower bound, up to 8.7 GiB more began with this job",)


@pytest.mark.parametrize(
    "levels",
    [
        pytest.param([(4000, BEFORE)] * 9 + [(0, BEFORE)], id="it was there before"),
        pytest.param([(4000, DURING)] * 9 + [(0, DURING)], id="it stays behind"),
    ],
)
def test_what_others_hold_is_not_laid_at_a_runs_door(job: Job, levels: list[tuple[int, int]]) -> None:
    assert looked_at(job, levels).lower_bound_note == ""
