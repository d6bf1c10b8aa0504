"""Simulated devices with real processes on them."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from calibration.domain.samples import PoolSample, PoolState
from calibration.probes import simgpu
from calibration.probes.simulated import SimulatedDevices
from tests.wait import until

GIB = 2**30


class Cards:
    """Two simulated devices of 24 GiB and the processes a test starts on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.devices = SimulatedDevices(folder, "2x24GiB", "n1")
        self.started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("CUDA_", "TIDEGATE_"))}
        job = subprocess.Popen(
            [sys.executable, "-S", simgpu.__file__, "run", *arguments],
            env={**clean, "TIDEGATE_SIMULATED": str(self.folder), **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(job)
        return job

    def used(self, index: int = 0) -> int | None:
        return self.look(index).used

    def look(self, index: int = 0) -> PoolSample:
        return self.devices.look()[index]

    def end(self) -> None:
        for job in self.started:
            job.kill()
            job.communicate()


@pytest.fixture
def cards(tmp_path: Path) -> Iterator[Cards]:
    cards = Cards(tmp_path / "simulated")
    yield cards
    cards.end()


def test_two_processes_share_a_device_and_leave_the_other_alone(cards: Cards) -> None:
    one = cards.start("--shape", "6GiB", "--seconds", "30", "--busy", "0.5")
    two = cards.start("--shape", "3GiB", "--seconds", "30", "--busy", "0.25", CUDA_VISIBLE_DEVICES="SIM-n1-0")
    until(lambda: cards.used() == 9 * GIB, 20, "both to hold their memory")

    pool = cards.look()

    assert pool.processes == tuple(sorted([(one.pid, 6 * GIB), (two.pid, 3 * GIB)]))
    assert (pool.total, pool.free, pool.busy, pool.simulated) == (24 * GIB, 15 * GIB, 0.75, True)
    assert dict(pool.process_busy) == {one.pid: 0.5, two.pid: 0.25}
    assert cards.used(1) == 0


def test_a_killed_process_holds_nothing_from_that_moment(cards: Cards) -> None:
    job = cards.start("--shape", "6GiB", "--seconds", "30")
    until(lambda: cards.used() == 6 * GIB, 20, "the job to hold its memory")

    job.send_signal(signal.SIGKILL)

    until(lambda: cards.used() == 0, 20, "the memory of the dead process to go")
    job.wait()
    cards.devices.sweep()
    assert list((cards.folder / "SIM-n1-0").iterdir()) == []


def test_one_byte_above_the_device_fails_the_process_that_grows_and_no_other(cards: Cards) -> None:
    neighbour = cards.start("--shape", "20GiB", "--seconds", "30")
    until(lambda: cards.used() == 20 * GIB, 20, "the neighbour to hold its memory")

    fits = cards.start("--shape", "4GiB")
    assert fits.wait(30) == 0
    grower = cards.start("--shape", f"0:1GiB,0.2:{4 * GIB + 1}", "--seconds", "30")
    _, err = grower.communicate(timeout=30)

    assert grower.returncode == 1
    assert "CUDA out of memory. Asked for 3.00 GiB on simulated gpu0" in err
    assert "24.00 GiB in all and 3.00 GiB free" in err
    assert neighbour.poll() is None
    assert cards.used() == 20 * GIB


def test_above_its_cap_a_job_is_refused_and_a_receipt_tells_the_figures(cards: Cards, tmp_path: Path) -> None:
    receipts = tmp_path / "receipts"
    receipts.mkdir()
    limits = {"TIDEGATE_JOB_ID": "7", "TIDEGATE_VRAM_CAP_BYTES": str(8 * GIB), "TIDEGATE_RECEIPTS": str(receipts)}
    cards.start("--shape", "1GiB", "--seconds", "30", TIDEGATE_JOB_ID="8")
    worker = cards.start("--shape", "5GiB", "--seconds", "30", **limits)
    until(lambda: cards.used() == 6 * GIB, 20, "both to hold their memory")

    within = cards.start("--shape", "3GiB", **limits)
    assert within.wait(30) == 0
    assert list(receipts.iterdir()) == []
    above = cards.start("--shape", f"{3 * GIB + 1}", **limits)
    _, err = above.communicate(timeout=30)

    assert above.returncode == 1
    assert "CUDA out of memory" in err
    assert "its cap is 8.00 GiB" in err
    [receipt] = receipts.iterdir()
    assert receipt.name == f"{above.pid}.vram-cap.json"
    assert json.loads(receipt.read_text()) == {
        "asked": 3 * GIB + 1,
        "held": 5 * GIB,
        "cap": 8 * GIB,
        "device_free": 18 * GIB,
        "device": "SIM-n1-0",
    }
    assert worker.poll() is None


def test_a_receipt_that_cannot_be_kept_changes_nothing_for_the_job(cards: Cards) -> None:
    job = cards.start("--shape", "2GiB", TIDEGATE_VRAM_CAP_BYTES=str(GIB), TIDEGATE_RECEIPTS="/nowhere/at/all")
    _, err = job.communicate(timeout=30)
    assert (job.returncode, "its cap is 1.00 GiB" in err) == (1, True)


@pytest.mark.parametrize(
    "arguments, environ, sentence",
    [
        pytest.param([], {"CUDA_VISIBLE_DEVICES": ""}, "No CUDA device is visible", id="no device"),
        pytest.param([], {"CUDA_VISIBLE_DEVICES": "-1,0"}, "No CUDA device is visible", id="hidden by the first"),
        pytest.param(["--device", "2"], {}, "no device 2 among the 2", id="a place that is not there"),
        pytest.param([], {"TIDEGATE_SIMULATED": ""}, "No simulated devices", id="no simulation"),
        pytest.param([], {"TIDEGATE_SIMULATED": "/nowhere"}, "cannot be read", id="no folder"),
    ],
)
def test_a_device_that_is_not_there_is_a_sentence(
    cards: Cards, arguments: list[str], environ: dict[str, str], sentence: str
) -> None:
    job = cards.start("--shape", "1GiB", *arguments, **environ)
    _, err = job.communicate(timeout=30)
    assert (job.returncode, sentence in err) == (1, True), err
    assert "Traceback" not in err


@pytest.mark.parametrize("shown, index", [("1,0", 1), ("SIM-n1-1", 1), ("0,1", 0), ("0,-1,1", 0)])
def test_the_first_visible_device_is_the_one_used(cards: Cards, shown: str, index: int) -> None:
    cards.start("--shape", "1GiB", "--seconds", "30", CUDA_VISIBLE_DEVICES=shown)
    until(lambda: cards.used(index) == GIB, 20, "the visible device to be used")
    assert cards.used(1 - index) == 0


def test_levels_follow_the_shape_and_are_told(cards: Cards) -> None:
    job = cards.start("--shape", "0:1GiB,0.2:6GiB,0.4:2GiB", "--print", "--exit", "3")
    out, _ = job.communicate(timeout=30)
    assert job.returncode == 3
    assert [line.split("gpu0 ")[1].split(" GiB")[0] for line in out.splitlines()] == ["1.00", "6.00", "2.00"]


def test_a_job_without_a_device_takes_real_main_memory_and_gives_it_back(cards: Cards) -> None:
    job = cards.start(
        "--ram", "0:100MiB,0.3:8MiB", "--seconds", "30", "--print", CUDA_VISIBLE_DEVICES="", TIDEGATE_SIMULATED=""
    )

    def resident() -> int:
        fields = Path(f"/proc/{job.pid}/statm").read_text().split()
        return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")

    until(lambda: resident() > 100 * 2**20, 20, "the memory to be taken")
    until(lambda: resident() < 40 * 2**20, 20, "the memory to be given back")


def test_files_that_mean_nothing_harm_nothing(cards: Cards) -> None:
    folder = cards.folder / "SIM-n1-0"
    own = f"{os.getpid()}.{simgpu.start_ticks(os.getpid())}"
    (folder / own).write_text(f"{GIB} 0.5 job 7\n")
    (folder / f"{os.getpid()}.1").write_text(f"{9 * GIB} 1 \n")  # this pid, another process
    (folder / "nonsense").write_text("?")
    (folder / "1.x").write_text("?")
    os.mkfifo(folder / f"1.{simgpu.start_ticks(1)}")
    assert cards.look().processes == ((os.getpid(), GIB),)

    for text in ("", "many 1 x", "5", "-5 0 x", "1e3 0 x", "\udcff"):
        (folder / own).write_text(text, errors="surrogateescape")
        assert cards.look().processes == ()
    (folder / own).unlink()
    (folder / own).symlink_to("/etc/passwd")
    assert cards.look().state is PoolState.OK
    assert cards.used() == 0


def test_a_folder_that_is_gone_is_unreadable_and_never_empty(cards: Cards) -> None:
    (cards.folder / "SIM-n1-0").rmdir()
    pool = cards.look()
    assert (pool.state, pool.free, pool.used) == (PoolState.UNREADABLE, None, None)
    assert "cannot be measured" in pool.message
    assert cards.look(1).state is PoolState.OK


def test_other_accounts_may_claim_but_not_replace_what_the_service_wrote(cards: Cards) -> None:
    modes = {path.name: oct(path.stat().st_mode & 0o7777) for path in [cards.folder, *cards.folder.iterdir()]}
    assert modes == {
        "simulated": "0o1777",
        "devices.json": "0o644",
        "SIM-n1-0": "0o1777",
        "SIM-n1-0.lock": "0o644",
        "SIM-n1-1": "0o1777",
        "SIM-n1-1.lock": "0o644",
    }


def test_the_job_s_side_needs_nothing_newer_than_python_3_8_and_nothing_installed() -> None:
    tree = ast.parse(Path(simgpu.__file__).read_text(), feature_version=(3, 8))
    imported = {
        (node.module or "").split(".")[0] if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported - {"__future__"} <= sys.stdlib_module_names
