"""Hardware that is no plain card, from what the driver answers to what starts: MIG, and one pool for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from calibration.domain.samples import RAM
from calibration.models import PoolNow
from placement.domain.admission.decision import Code, Verdict
from placement.domain.admission.gate import decide
from placement.models import Device, Job, Lease
from placement.services import device_environment, nodes
from tests.builders import a_waiting
from tests.integration.hardware_box import Box, Card, boxed, job_on
from tests.integration.loop_here import GIB, MIB

pytestmark = pytest.mark.django_db


@pytest.fixture
def box(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Box]:
    with boxed(settings, tmp_path, monkeypatch) as made:
        yield made


AAA = Card("MIG-aaa", 19968, 5000, compute=[(70, 4800, 1, 0)])
BBB, CCC = Card("MIG-bbb", 9856, 13), Card("MIG-ccc", 9856, 13)


def parent(*parts: Card | None, total: Any = "no", used: int = 0) -> Card:
    return Card("GPU-A", total, used, parts=list(parts), name="NVIDIA A100-SXM4-40GB")


class TestMig:
    @pytest.mark.parametrize("total, used", [("no", 0), (40960, 5013)])
    def test_jobs_go_to_the_instances_and_use_is_counted_once(self, box: Box, total: Any, used: int) -> None:
        large = box.ask(12000 * MIB, 0, parent(AAA, BBB, total=total, used=used))
        small = box.ask(9000 * MIB)
        assert large.grant
        assert small.grant
        assert (large.grant.device, small.grant.device) == ("MIG-aaa", "MIG-bbb")
        assert [c.device for c in small.candidates] == ["MIG-bbb", "MIG-aaa"], "the parent is no place"
        assert (
            sum(row.used or 0 for row in box.pools.values() if row.kind == "vram" and row.state == "ok") == 5013 * MIB
        )
        assert box.pools["gpu0.0"].free == 14968 * MIB
        job = Job(node="testnode", device="MIG-aaa", charges={}, user=box.node.user)
        assert device_environment.of(job, {}, "").variables["CUDA_VISIBLE_DEVICES"] == "MIG-aaa"

    def test_an_instance_that_went_keeps_its_row_until_its_job_has_ended(self, box: Box) -> None:
        box.look(parent(AAA, BBB))
        job = job_on(box, "MIG-bbb", 80, {"MIG-bbb": 9000 * MIB})
        decision = box.ask(9000 * MIB, 0, parent(AAA, CCC), device="MIG-bbb")
        assert (decision.code, decision.headline) == (
            Code.DEVICE_LOST, "gpu0.1 is gone (this MIG instance was removed)."
        )  # fmt: skip
        assert box.ask(9000 * MIB).grant.device == "MIG-ccc"  # type: ignore[union-attr]
        rows = dict(Device.objects.values_list("uuid", "name"))
        assert rows == {"GPU-A": "gpu0", "MIG-aaa": "gpu0.0", "MIG-bbb": "gpu0.1", "MIG-ccc": "gpu0.1-2"}
        job.refresh_from_db()
        assert job.flags.count("its device is gone: a MIG instance, removed") == 1
        Lease.objects.update(released_at=job.started_at)
        Job.objects.update(state="finished", outcome="completed")
        box.agent.discovered = None
        box.look(*box.driver.cards)
        box.look(*box.driver.cards)
        assert not Device.objects.filter(uuid="MIG-bbb", retired=False).exists()
        assert not PoolNow.objects.filter(pool="MIG-bbb").exists()

    def test_mig_without_an_instance_is_closed_and_says_so(self, box: Box) -> None:
        decision = box.ask(GIB, 0, parent())
        assert (decision.verdict, decision.code) == (Verdict.WAIT, Code.NO_READING)
        assert decision.headline == "gpu0 is closed: MIG on, no instances."
        assert box.ask(GIB, 0, parent(AAA)).grant.device == "MIG-aaa"  # type: ignore[union-attr]
        assert box.ask(GIB, 0, Card("GPU-A", 40960)).grant.device == "GPU-A", "off again"  # type: ignore[union-attr]


class TestOnePool:
    SPARK = Card("GPU-s", None, name="NVIDIA GB10", compute=[(300, 20480)])

    def spark(self, box: Box) -> Job:
        box.ram(127600748 * 1024, 118566368 * 1024)
        box.look(self.SPARK)
        return job_on(box, "GPU-s", 300, {RAM: 20480 * MIB})

    def test_device_memory_and_ram_come_out_of_one_pool_once(self, box: Box) -> None:
        job = self.spark(box)
        refused = box.ask(60 * GIB, 60 * GIB)
        assert (refused.verdict, refused.grant) == (Verdict.WAIT, None)
        assert "120.0 GiB" in refused.headline
        taken = box.ask(50 * GIB, 50 * GIB)
        assert taken.grant
        assert (taken.grant.device, dict(taken.grant.charges)) == ("GPU-s", {RAM: 100 * GIB})
        job.refresh_from_db()
        assert (job.used["GPU-s"], job.used[RAM]) == (20480 * MIB, 20480 * MIB)
        assert (box.pools["gpu0"].used, box.pools["gpu0"].free) == (20480 * MIB, 118566368 * 1024)
        assert box.pools["RAM"].free == 118566368 * 1024
        assert box.pools["RAM"].unexplained == 0, "what the process has on the device explains what is gone"

    def test_what_is_learned_of_it_is_told_apart_again(self, box: Box) -> None:
        job = self.spark(box)
        box.proc.process(300, ppid=1, rss=3 * GIB)
        box.look(self.SPARK)
        levels = box.agent.windows.of(job, 0.0).window.levels
        assert (levels["vram"].peak, levels["ram"].peak) == (20480 * MIB, 3 * GIB)
        job.refresh_from_db()
        assert job.used[RAM] == 23 * GIB

    def test_a_first_run_there_keeps_others_away_and_settles_by_both_kinds(self, box: Box) -> None:
        job = self.spark(box)
        job.charges = {RAM: {**job.charges[RAM], "basis": "cold_start"}}
        job.save(update_fields=["charges"])
        assert box.ask(GIB, GIB).code is Code.COLD_START
        windows = box.agent.windows.of(job, 0.0)
        levels = windows.window.levels
        long = {kind: replace(level, flat_seconds=9e6, worked_seconds=9e6) for kind, level in levels.items()}
        windows.window = replace(windows.window, levels=long)
        box.look(self.SPARK)
        job.refresh_from_db()
        assert job.charges[RAM]["settled"]
        assert job.charges[RAM]["granted"] >= 20480 * MIB, "of both kinds, not of RAM alone"

    def test_a_card_with_memory_of_its_own_that_does_not_tell_it_is_closed(self, box: Box) -> None:
        decision = box.ask(GIB, 0, Card("GPU-0", None))
        assert (decision.verdict, decision.headline) == (
            Verdict.WAIT, "gpu0 is closed: cannot be measured: Not Supported."
        )  # fmt: skip

    def test_an_admin_can_say_that_a_device_shares_the_machines_memory(self, box: Box) -> None:
        box.look(Card("GPU-0", None))
        said = nodes.edit_device(box.node.user, Device.objects.get().pk, {"one_pool": True})
        assert "comes out of the machine's RAM" in said[0]
        box.agent.discovered = None
        box.look(*box.driver.cards)
        grant = box.ask(50 * GIB, 50 * GIB).grant
        assert grant
        assert dict(grant.charges) == {RAM: 100 * GIB}
        assert box.pools["gpu0"].state == "ok"

    def test_one_that_is_lost_takes_nobody_though_there_is_ram(self, box: Box) -> None:
        box.look(self.SPARK)
        decision = decide(box.look(), a_waiting(9, GIB, GIB))
        assert (decision.code, decision.grant) == (Code.DEVICE_LOST, None)

    def test_memory_of_a_device_that_the_kernel_lists_is_no_ram(self, box: Box) -> None:
        for number, cpus, size in ((0, "0-71\n", 480), (1, "\n", 96)):
            folder = box.folder / f"sys/devices/system/node/node{number}"
            folder.mkdir(parents=True)
            (folder / "cpulist").write_text(cpus)
            (folder / "meminfo").write_text(
                f"Node {number} MemTotal: {size << 20} kB\nNode {number} MemFree: {(size - 6) << 20} kB\n"
            )
        box.ram(576 * GIB, 560 * GIB)
        box.look(Card("GPU-0", 96 * 1024, name="NVIDIA GH200 480GB"))
        assert (box.pools["RAM"].total, box.pools["RAM"].free) == (480 * GIB, (560 - 90) * GIB)
