"""A machine made of a table of cards, a /proc of files and the real loop: what a driver answers, up to the gate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from calibration.domain.samples import RAM
from calibration.models import PoolNow
from calibration.probes import nvml_device
from calibration.probes.choose import Instrument
from placement import snapshots
from placement.domain.admission.decision import Decision
from placement.domain.admission.gate import decide
from placement.domain.world.snapshot import Snapshot
from placement.models import Device, Job, Lease
from placement.services import node_tick, nodes
from tests.builders import a_waiting
from tests.fake_proc import FakeProc
from tests.integration.loop_here import GIB, MIB, Here, here
from tests.integration.rows import a_running


class Card:
    """One device of the driver below; a total of None answers that it is not supported, "no" that it is not allowed."""

    def __init__(self, uuid: str, total: Any = 24576, used: int = 0, **more: Any) -> None:
        self.uuid, self.total, self.used, self.reserved = uuid, total, used, more.pop("reserved", None)
        self.name, self.compute = more.pop("name", "NVIDIA RTX 4090"), more.pop("compute", [])
        self.parts: list[Card | None] | None = more.pop("parts", None)
        self.lost = False  # "GPU is lost": whatever is asked of it
        assert not more


class Driver:
    """What the probe asks pynvml, answered from cards; MiB. Everything else is the real module: errors, constants."""

    def __init__(self, real: Any) -> None:
        self._real, self.cards = real, list[Card]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def _refuse(self, code: int) -> Any:
        raise self._real.NVMLError(code)

    def nvmlInit(self) -> None: ...

    def nvmlShutdown(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        return self.cards[index]

    def nvmlDeviceGetUUID(self, card: Card) -> str:
        return card.uuid

    def nvmlDeviceGetName(self, card: Card) -> str:
        return card.name

    def nvmlDeviceGetMigMode(self, card: Card) -> list[int]:
        return [int(card.parts is not None)] * 2

    def nvmlDeviceGetMaxMigDeviceCount(self, card: Card) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, card: Card, place: int) -> Card:
        parts = card.parts or []
        return (parts[place] if place < len(parts) else None) or self._refuse(self._real.NVML_ERROR_NOT_FOUND)

    def nvmlDeviceGetMemoryInfo(self, card: Card, version: Any = None) -> Any:
        if card.lost:
            self._refuse(self._real.NVML_ERROR_GPU_IS_LOST)
        if card.total is None or card.total == "no":
            self._refuse(self._real.NVML_ERROR_NOT_SUPPORTED if card.total is None else 4)
        if version is not None and card.reserved is None:
            self._refuse(self._real.NVML_ERROR_FUNCTION_NOT_FOUND)
        kept = card.reserved or 0
        return type("Memory", (), {"total": card.total * MIB, "free": (card.total - card.used - kept) * MIB,
                                   "reserved": kept * MIB})  # fmt: skip

    def nvmlDeviceGetComputeRunningProcesses_v3(self, card: Card) -> list[Any]:
        return [nvml_device._Process(pid, size * MIB, *instance) for pid, size, *instance in card.compute]

    def nvmlDeviceGetGraphicsRunningProcesses_v3(self, card: Card) -> list[Any]:
        return []

    nvmlDeviceGetMPSComputeRunningProcesses_v3 = nvmlDeviceGetGraphicsRunningProcesses_v3

    def nvmlDeviceGetUtilizationRates(self, card: Card, since: int = 0) -> Any:
        self._refuse(self._real.NVML_ERROR_NOT_SUPPORTED)

    nvmlDeviceGetProcessUtilization = nvmlDeviceGetUtilizationRates


class Box:
    """A machine of files and a driver, looked at by the real loop; a look decides nothing and starts nothing."""

    def __init__(self, node: Here, driver: Driver, proc: FakeProc, folder: Path) -> None:
        self.node, self.driver, self.proc, self.folder = node, driver, proc, folder
        self.ram(512 * GIB, 500 * GIB)
        self.agent = self.worker()

    def worker(self) -> node_tick.Agent:
        agent = node_tick.Agent("testnode")
        agent.instrument = Instrument(
            "testnode", proc_root=str(self.proc.root), cgroup_root=str(self.folder / "none"),
            sys_root=str(self.folder / "sys"), expected=nodes.expected("testnode"), pss_budget_ms=0,
        )  # fmt: skip
        return agent

    def ram(self, total: int, available: int, files: int = 0) -> None:
        lines = {"MemTotal": total, "MemAvailable": available, "Shmem": files}
        (self.proc.root / "meminfo").write_text("".join(f"{n}: {size // 1024} kB\n" for n, size in lines.items()))

    def look(self, *cards: Card) -> Snapshot:
        self.driver.cards = list(cards)
        node_tick.look(self.agent)
        self.pools = {row.name: row for row in PoolNow.objects.filter(node="testnode")}
        return snapshots.take()

    def ask(self, vram: int, ram: int = 0, *cards: Card, **more: Any) -> Decision:
        return decide(self.look(*(cards or self.driver.cards)), a_waiting(99, vram, ram, **more))


@contextmanager
def boxed(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Box]:
    """Make such a machine, without a device yet."""
    driver = Driver(nvml_device.pynvml)
    for module in ("nvml", "nvml_device"):
        monkeypatch.setattr(f"calibration.probes.{module}.pynvml", driver)
    proc = FakeProc(tmp_path / "proc")
    with here(settings, tmp_path / "data", floor_vram_mib=0, floor_ram_mib=0) as node:
        settings.SIMULATE = ""
        Device.objects.all().delete()
        monkeypatch.setattr("placement.domain.ending.watchdog.choose", lambda *args: None)
        yield Box(node, driver, proc, tmp_path)


def job_on(box: Box, device: str, pid: int, charges: dict[str, int], **more: Any) -> Job:
    """Return a job of which the tick knows one process, and what it was granted (bytes)."""
    box.proc.process(pid, ppid=1)
    boot = box.agent.instrument._boot_id
    held = {pool: {"granted": size, "held": size, "at_start": size, "margin": 0, "basis": "declared"}
            for pool, size in charges.items()}  # fmt: skip
    job = a_running(
        box.node.user, node="testnode", device=device, charges=held, used={}, admitted_clock=None,
        child={"boot_id": boot, "pid": pid, "start_ticks": 100}, **more,
    )  # fmt: skip
    for pool, size in charges.items():
        Lease.objects.create(job=job, node="testnode", pool=pool, kind="ram" if pool == RAM else "vram", bytes=size)
    return job
