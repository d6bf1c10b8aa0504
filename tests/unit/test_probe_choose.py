from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from calibration.domain.samples import RAM, PoolSample, PoolState, ProcessSample
from calibration.probes import choose, procfs, pss, reference, simgpu
from calibration.probes.choose import Instrument, with_descendants
from calibration.probes.nvml import NvmlLook
from tests.fake_proc import MIB, FakeProc

GIB = 2**30


@pytest.fixture
def proc(tmp_path: Path) -> FakeProc:
    proc = FakeProc(tmp_path / "proc")
    (proc.root / "meminfo").write_text(f"MemTotal: {8 * 2**20} kB\nMemAvailable: {5 * 2**20} kB\n")
    return proc


def _fake(proc: FakeProc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *answers: object) -> Instrument:
    """Return an instrument on a fake /proc whose driver gives these answers, one a reading."""
    given = iter(answers)

    class Driver:
        def __init__(self, **_: object) -> None: ...

        def look(self) -> object:
            answer = next(given)
            if isinstance(answer, Exception):
                raise answer
            return answer

    monkeypatch.setattr(choose, "Nvml", Driver)
    return Instrument("n1", proc_root=str(proc.root), cgroup_root=str(tmp_path / "none"))


CARD = PoolSample("GPU-0", "vram", "gpu0", PoolState.OK, total=24 * GIB, free=23 * GIB, used=GIB, read_at=5.0, index=0)


def test_a_reading_of_this_machine(tmp_path: Path) -> None:
    reading = Instrument("n1", nvml=False).read([os.getpid()])

    total, available = reference.host_memory()
    ram = reading.pools[RAM]
    assert ram.total is not None
    assert ram.total <= total
    assert ram.free is not None
    assert ram.free <= available * 1.05
    assert ram.used == ram.total - ram.free
    me = reading.processes[os.getpid()]
    assert me.ram_exact
    assert me.ram is not None
    assert me.rss is not None
    assert 0 < me.ram <= me.rss
    assert reading.at >= max(pool.read_at or 0.0 for pool in reading.pools.values())
    assert reading.boot_id
    assert reading.wall > reference.boot_time()
    assert 0 < reading.cost_ms < 10_000


def test_processes_that_vanished_cannot_be_read_or_have_no_name_all_keep_their_device_memory(
    proc: FakeProc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.process(1002, rss=90 * MIB)
    proc.process(1003, uid=4242)
    proc.process(1004, ppid=999, rss=40 * MIB)
    proc.rollup(1004, Pss_Anon=30 * 1024, Pss_Shmem=0)
    told = tuple((pid, size * MIB) for pid, size in ((1001, 100), (1002, 200), (1003, 300), (1004, 400)))
    instrument = _fake(proc, tmp_path, monkeypatch, NvmlLook("ok", "", [replace(CARD, processes=told)]))

    reading = instrument.read([1002, 1003, 1004])

    assert sum(size or 0 for _, size in reading.pools["GPU-0"].processes) == 1000 * MIB
    assert 1001 not in reading.processes
    assert reading.processes[1002].vram == {"GPU-0": 200 * MIB}
    assert (reading.processes[1002].ram, reading.processes[1002].ram_exact) == (90 * MIB, False)
    assert reading.processes[1003].user == "uid 4242"
    assert (reading.processes[1004].ram, reading.processes[1004].ram_exact) == (30 * MIB, True)


@pytest.mark.parametrize("refused_at", range(5))
def test_a_process_that_refuses_one_of_its_files_or_lost_its_parent_costs_no_reading(
    refused_at: int,
    proc: FakeProc,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    real, reads = procfs.read_small, [0]
    proc.process(999)
    for pid in (1002, 1004):
        proc.process(pid, ppid=999, rss=90 * MIB)
        proc.rollup(pid, Pss_Anon=30 * 1024, Pss_Shmem=0)

    def refusing(path: str, *limit: int) -> bytes:
        if "/1004/" in path:
            shutil.rmtree(proc.root / "999", ignore_errors=True)  # the parent goes while its child is read
        if "/1002/" in path:
            reads[0] += 1
            if reads[0] == refused_at + 1:
                raise PermissionError(13, "Permission denied", path)
        return real(path, *limit)

    monkeypatch.setattr(procfs, "read_small", refusing)
    monkeypatch.setattr(pss, "read_small", refusing)
    told = ((1002, 200 * MIB), (1004, 400 * MIB))
    instrument = _fake(proc, tmp_path, monkeypatch, NvmlLook("ok", "", [replace(CARD, processes=told)]))

    reading = instrument.read([1002, 1004])

    assert reads[0] > refused_at, "it was never refused"
    assert reading.pools["GPU-0"].processes == told
    assert reading.processes[1004].ram == 30 * MIB
    if 1002 in reading.processes:  # where its stat was refused there is nothing to say of it
        seen = reading.processes[1002]
        assert seen.vram == {"GPU-0": 200 * MIB}
        assert (seen.ram, seen.ram_exact) in ((30 * MIB, True), (90 * MIB, False))
    assert (1002 in reading.processes) == (refused_at > 0)
    assert caplog.records == []


def test_memory_that_the_driver_does_not_tell_stays_unknown(
    proc: FakeProc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.process(79)
    instrument = _fake(proc, tmp_path, monkeypatch, NvmlLook("ok", "", [replace(CARD, processes=((79, None),))]))
    assert instrument.read().processes[79].vram == {"GPU-0": None}


def test_a_driver_library_that_raises_something_else_keeps_the_last_figures_with_their_age(
    proc: FakeProc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = NvmlLook("ok", "", [CARD])
    instrument = _fake(proc, tmp_path, monkeypatch, look, RuntimeError("segment"), look)

    first, second, third = (instrument.read().pools["GPU-0"] for _ in range(3))

    assert (first.message, third.message) == ("", "")
    assert (second.read_at, second.free) == (5.0, CARD.free)
    assert "RuntimeError: segment" in second.message


def test_what_the_driver_says_of_itself_is_a_note(
    proc: FakeProc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = NvmlLook("not_ready", "the NVIDIA driver is not ready", [], ("one more",))
    assert _fake(proc, tmp_path, monkeypatch, look).read().notes == (look.message, "one more")


def test_a_machine_whose_memory_cannot_be_read_is_unreadable_and_says_why(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path / "proc")
    ram = Instrument("n1", proc_root=str(proc.root), cgroup_root="/none", nvml=False).read().pools[RAM]
    assert (ram.state, ram.free, ram.used, ram.read_at) == (PoolState.UNREADABLE, None, None, None)
    assert "could not be read" in ram.message


def test_simulated_devices_replace_the_real_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instrument = Instrument("n1", simulate="1x24GiB,1x80GiB", simulated_dir=tmp_path / "sim")
    device = simgpu.Device(1, {"TIDEGATE_SIMULATED": str(tmp_path / "sim")})
    device.hold(2 * GIB, busy=0.5)

    reading = instrument.read()

    assert [pool for pool in reading.pools if pool != RAM] == ["SIM-n1-0", "SIM-n1-1"]
    assert reading.pools["SIM-n1-1"].used == 2 * GIB
    assert reading.processes[os.getpid()].vram == {"SIM-n1-1": 2 * GIB}
    device.hold(0)
    assert instrument.read().pools["SIM-n1-1"].used == 0


def test_a_simulation_without_a_folder_is_refused() -> None:
    with pytest.raises(ValueError, match="folder"):
        Instrument("n1", simulate="1x24GiB")


def test_what_is_expected_of_a_machine_without_a_driver_probe_is_unreadable(tmp_path: Path) -> None:
    pool = Instrument("n1", nvml=False, expected=[CARD]).read().pools["GPU-0"]
    assert (pool.state, pool.read_at) == (PoolState.UNREADABLE, 5.0)


@pytest.mark.parametrize(
    "parents, owned, expected",
    [
        pytest.param({2: 1, 3: 2, 4: 3, 5: 1}, [2], {2, 3, 4}, id="children of children"),
        pytest.param({310: 32760, 32760: 1}, [32760], {32760, 310}, id="numbers that went round"),
        pytest.param({2: 3, 3: 2}, [2], {2, 3}, id="a ring ends"),
        pytest.param({2: 1}, [9], set(), id="an owned process that is gone"),
    ],
)
def test_descendants(parents: dict[int, int], owned: list[int], expected: set[int]) -> None:
    processes = {pid: ProcessSample(pid=pid, ppid=ppid, start_ticks=1) for pid, ppid in parents.items()}
    assert with_descendants(processes, owned) == expected


def test_the_report_has_a_line_for_each_probe_and_each_device(tmp_path: Path) -> None:
    lines = Instrument("n1", simulate="2x24GiB", simulated_dir=tmp_path).probe_report()
    assert [what for what, _, _ in lines] == [
        "processes",
        "process memory",
        "main memory",
        "simulated devices",
        "simulated devices",
    ]
    assert all(ok for _, ok, _ in lines)
    assert "simulated 24 GiB SIM-n1-0, 24.0 GiB: ok" in lines[3][2]


def test_the_report_says_why_there_is_no_device(
    proc: FakeProc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = NvmlLook("absent", "no NVIDIA GPU: no library", [])
    lines = _fake(proc, tmp_path, monkeypatch, look).probe_report()
    assert ("NVIDIA devices", False, "no NVIDIA GPU: no library") in lines
    assert lines[1][:2] == ("process memory", False)


def test_a_card_whose_instances_are_read_works_and_one_without_any_does_not(
    proc: FakeProc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = PoolSample("GPU-A", "vram", "gpu0", PoolState.HEADING, message="MIG on, 1 instance")
    bare = PoolSample("GPU-B", "vram", "gpu1", PoolState.HEADING, message="MIG on, no instances")
    part = replace(CARD, pool="MIG-a", name="gpu0.0", parent="GPU-A")
    lines = _fake(proc, tmp_path, monkeypatch, NvmlLook("ok", "", [card, bare, part])).probe_report()
    assert {text.split()[0]: ok for what, ok, text in lines if what == "NVIDIA devices"} == {
        "gpu0": True,
        "gpu1": False,
        "gpu0.0": True,
    }
