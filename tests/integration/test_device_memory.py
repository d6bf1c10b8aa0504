"""Device memory that no plain sum tells: the driver's part, another's card, what outlives its process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calibration.domain.samples import RAM
from placement.domain.world.requests import Exclusive
from placement.models import AuditEntry, Job
from tests.integration.hardware_box import Box, Card, boxed, job_on
from tests.integration.loop_here import GIB, MIB

pytestmark = pytest.mark.django_db


@pytest.fixture
def box(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Box]:
    with boxed(settings, tmp_path, monkeypatch) as made:
        yield made


@pytest.mark.parametrize(
    "used, reserved", [pytest.param(8, 904, id="second"), pytest.param(912, None, id="first"), (103, 0)]
)
def test_what_the_driver_keeps_keeps_nobody_out(box: Box, used: int, reserved: int | None) -> None:
    card = Card("GPU-0", 24576, used, reserved=reserved)
    assert box.ask(22000 * MIB, 0, card).grant
    assert box.ask(22000 * MIB, exclusive=Exclusive.DEVICE).grant


def test_where_the_memory_call_changes_the_history_is_marked(box: Box) -> None:
    box.look(Card("GPU-0", 24576, 912))
    assert not AuditEntry.objects.filter(action="memory_call").exists()
    box.agent = box.worker()
    box.look(Card("GPU-0", 24576, 8, reserved=904))
    said = AuditEntry.objects.get(action="memory_call", subject="device GPU-0").detail["said"]
    assert said == "Use of gpu0 no longer includes what the driver keeps for itself (904 MiB) from here on."
    box.look(Card("GPU-0", 24576, 8, reserved=904))
    assert AuditEntry.objects.filter(action="memory_call").count() == 1


def test_memory_on_a_device_that_was_not_leased_is_its_owners_and_is_flagged(box: Box) -> None:
    far = [(900, 310), (901, 310), (902, 310), (903, 310)]
    cards = [Card("GPU-0", compute=far, used=1240), Card("GPU-2", compute=[(900, 9000)], used=9000)]
    box.look(*cards)
    job = job_on(box, "GPU-2", 900, {"GPU-2": 10000 * MIB, RAM: GIB})
    for pid in (901, 902, 903):
        box.proc.process(pid, ppid=900)
    box.look(*cards)
    job.refresh_from_db()
    assert (job.used["GPU-2"], job.used["GPU-0"]) == (9000 * MIB, 1240 * MIB)
    assert "uses 1.2 GiB on gpu0, which it does not lease (it leases gpu1)" in job.flags
    assert box.agent.windows.of(job, 0.0).window.levels["vram"].peak == 9000 * MIB, "learned for one device"
    assert box.pools["gpu0"].free == (24576 - 1240) * MIB
    fits = box.ask((24576 - 1240) * MIB)
    assert fits.grant
    assert fits.grant.device == "GPU-0"
    assert box.ask((24576 - 1239) * MIB).grant is None


def test_a_script_that_shows_itself_another_card_is_flagged_within_two_looks(box: Box) -> None:
    cards = [Card("GPU-0"), Card("GPU-1")]
    box.look(*cards)
    job = job_on(box, "GPU-1", 900, {"GPU-1": 10000 * MIB, RAM: GIB})
    cards[0].compute, cards[0].used = [(900, 5000)], 5000
    box.look(*cards)
    box.look(*cards)
    job.refresh_from_db()
    assert any("on gpu0, which it does not lease (it leases gpu1)" in flag for flag in job.flags)


def test_what_outlives_its_process_is_told_whose_it_was_and_no_next_job_inherits_it(box: Box) -> None:
    card = Card("GPU-0", 24000, 12000, compute=[(500, 11500)])
    box.look(card)
    job = job_on(box, "GPU-0", 500, {"GPU-0": 11500 * MIB, RAM: GIB})
    box.look(card)
    box.agent = box.worker()  # a restart in between costs nothing
    box.proc.process(500, state="Z")  # nobody has collected it yet
    box.look(card)
    for file in (box.proc.root / "500").iterdir():
        file.unlink()
    (box.proc.root / "500").rmdir()
    box.look(card)
    assert [who[2] for who in box.pools["gpu0"].external_who] == ["(ended)"], "the driver lists it for another look"
    assert box.pools["gpu0"].left == []
    card.compute = []
    box.look(card)
    Job.objects.filter(pk=job.pk).update(state="finished", outcome="completed")
    box.look(card)
    assert [row[:2] for row in box.pools["gpu0"].left] == [[f"job:{job.pk}", 11500 * MIB]]
    box.agent = box.worker()
    box.look(card)
    next_one = job_on(box, "GPU-0", 600, {"GPU-0": 4000 * MIB, RAM: GIB})
    card.used, card.compute = 15000, [(600, 3000)]
    box.look(card)
    assert [row[:2] for row in box.pools["gpu0"].left] == [[f"job:{job.pk}", 11500 * MIB]], "a worker later, too"
    assert box.pools["gpu0"].owners[f"job:{next_one.pk}"] == 3000 * MIB
    assert box.pools["gpu0"].free == 9000 * MIB, "the gate goes by what the device says"
    card.used = 3500
    box.look(card)
    assert (box.pools["gpu0"].left, box.pools["gpu0"].unexplained) == ([], 500 * MIB)


def test_memory_that_came_back_before_anybody_looked_is_not_waited_for(box: Box) -> None:
    card = Card("GPU-0", 24000, 22000)
    box.look(card)
    card.used = 2000  # it crashed, and gave all back within half a second
    box.agent.drains.begin(["GPU-0"], box.agent.began + 60)
    box.look(card)
    box.look(card)
    assert (box.pools["gpu0"].free, box.pools["gpu0"].draining) == (22000 * MIB, False), "one look later"


def test_files_in_memory_go_on_counting_and_are_named(box: Box) -> None:
    box.ram(64 * GIB, 50 * GIB, files=30 * MIB)
    before = box.look().nodes[0].ram.free
    box.ram(64 * GIB, 50 * GIB - 800 * MIB, files=830 * MIB)
    assert box.look().nodes[0].ram.free == (before or 0) - 800 * MIB
    assert box.pools["RAM"].files == 830 * MIB
