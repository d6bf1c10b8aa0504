"""Real pynvml on the stub library; each test is one process that changes its machine and looks at it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.nvml_stub import State, build

ROOT = Path(__file__).parents[2]
PRELUDE = """
import json, os, sys
from pathlib import Path
from calibration.probes.nvml import Nvml
from tests.nvml_stub import *
state, now, seen = State(Path(os.environ["NVML_STUB_STATE"])), [0.0], []
nvml = Nvml(clock=lambda: now[0], wall=lambda: 1000.0 + now[0])
def look(at=None):
    now[0] = now[0] + 1 if at is None else float(at)
    got = nvml.look()
    pools = {p.pool: {"state": p.state, "free": p.free and p.free // MIB, "used": p.used and p.used // MIB,
                      "reserved": p.reserved and p.reserved // MIB, "at": p.read_at, "message": p.message,
                      "index": p.index, "since": p.since, "name": p.name, "busy": p.busy,
                      "parent": p.parent, "shares": p.shares,
                      "processes": [[pid, size and size // MIB] for pid, size in p.processes],
                      "process_busy": p.process_busy} for p in got.pools}
    return {"library": got.library, "message": got.message, "pools": pools, "notes": got.notes}
def card(uuid, used=0, **more):
    return Device(uuid, used=used * MIB, **more)
"""


def in_stub(tmp_path: Path, body: str, *, defines: tuple[str, ...] = (), library: bool = True) -> Any:
    """Run the body beside a fresh stub and return what it put into ``seen``."""
    state = State(tmp_path / "nvml.txt")
    environ = {**os.environ, "NVML_STUB_STATE": str(state.path), "PYTHONPATH": str(ROOT)}
    if library:
        environ.update(state.environ(build(tmp_path, defines=defines)))
    code = PRELUDE + body + "\nprint(json.dumps(seen))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environ, cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_device_with_both_lists_and_its_use(tmp_path: Path) -> None:
    seen = in_stub(
        tmp_path,
        """
state.write([
    card("GPU-0", 6000, reserved=900 * MIB, busy=35, sm=[(500, 30)],
         compute=[(500, 3000 * MIB), (502, None)], graphics=[(500, 3000 * MIB), (501, 200 * MIB)],
         mps=[(503, 50 * MIB)]),
    card("GPU-1", 2500, busy=None, compute=[(500, 2500 * MIB)])])
seen.append(look())
""",
    )[0]
    first, second = seen["pools"]["GPU-0"], seen["pools"]["GPU-1"]
    assert seen["library"] == "ok"
    assert first["processes"] == [[500, 3000], [501, 200], [502, None], [503, 50]]
    assert (first["used"], first["reserved"], first["free"]) == (6000, 900, 24576 - 6900)
    assert (first["busy"], first["process_busy"]) == (0.35, [[500, 0.3]])
    assert second["processes"] == [[500, 2500]]
    assert (second["busy"], second["name"], second["index"]) == (None, "gpu1", 1)


@pytest.mark.parametrize(
    "defines, missing, used, reserved",
    [
        pytest.param((), "()", 8, 904, id="second call"),
        pytest.param(("WITHOUT_MEMORY_V2",), "()", 912, None, id="a library without the second call"),
        pytest.param((), "['nvmlDeviceGetMemoryInfo_v2']", 912, None, id="a driver that refuses it"),
    ],
)
def test_free_is_the_same_by_both_memory_calls(
    tmp_path: Path, defines: tuple[str, ...], missing: str, used: int, reserved: int | None
) -> None:
    body = f"state.write([card('GPU-0', 8, reserved=904 * MIB)], missing={missing}); seen.append(look())"
    pool = in_stub(tmp_path, body, defines=defines)[0]["pools"]["GPU-0"]
    assert (pool["free"], pool["used"], pool["reserved"]) == (23664, used, reserved)


def test_one_device_is_read_by_one_call_for_good(tmp_path: Path) -> None:
    seen = in_stub(
        tmp_path,
        """
state.write([card("GPU-0", 8, reserved=904 * MIB)], missing=["nvmlDeviceGetMemoryInfo_v2"])
seen.append(look())
state.write([card("GPU-0", 8, reserved=904 * MIB)])
seen.append(look())
""",
    )
    assert [look["pools"]["GPU-0"]["used"] for look in seen] == [912, 912]


def test_a_missing_library_is_a_machine_without_an_nvidia_gpu(tmp_path: Path) -> None:
    seen = in_stub(tmp_path, "seen.append(look())", library=False)[0]
    assert (seen["library"], seen["pools"]) == ("absent", {})
    assert seen["message"].startswith("no NVIDIA GPU")


def test_a_driver_that_comes_up_late_is_found_without_a_restart_and_not_asked_each_second(
    tmp_path: Path,
) -> None:
    seen = in_stub(
        tmp_path,
        """
import pynvml
tries, real = [], pynvml.nvmlInit
pynvml.nvmlInit = lambda: (tries.append(now[0]), real())[1]
state.write(init=DRIVER_NOT_LOADED)
for second in range(60): seen.append(look(second))
state.write([card("GPU-0"), card("GPU-1")])
for second in range(60, 91): seen.append(look(second))
seen.append(tries)
""",
    )
    *looks, tries = seen
    assert {look["library"] for look in looks[:60]} == {"not_ready"}
    assert tries[:6] == [0, 1, 3, 8, 18, 48]
    assert looks[-1]["library"] == "ok"
    assert sorted(looks[-1]["pools"]) == ["GPU-0", "GPU-1"]


def test_a_forked_child_opens_the_driver_for_itself(tmp_path: Path) -> None:
    seen = in_stub(
        tmp_path,
        """
state.write([card("GPU-0", 100)])
look()
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, json.dumps(look()).encode()); os._exit(0)
os.wait(); seen += [json.loads(os.read(reader, 65536)), look()]
""",
    )
    assert [look["library"] for look in seen] == ["ok", "ok"]
    assert seen[0]["pools"]["GPU-0"]["used"] == 100


def test_a_session_ended_behind_our_back_is_opened_again_in_the_same_look(tmp_path: Path) -> None:
    body = """
import pynvml
state.write([card("GPU-0", 100)]); look(); pynvml.nvmlShutdown(); seen.append(look())
"""
    assert in_stub(tmp_path, body)[0]["pools"]["GPU-0"]["state"] == "ok"


def test_a_driver_updated_under_running_jobs_closes_every_known_device(tmp_path: Path) -> None:
    seen = in_stub(
        tmp_path,
        """
cards = [card(f"GPU-{i}", 100) for i in range(4)]
state.write(cards); seen.append(look(99))
state.write(cards, init=LIB_RM_VERSION_MISMATCH, every=LIB_RM_VERSION_MISMATCH)
seen += [look(100), look(101), look(102)]
state.write(cards); seen.append(look(200))
""",
    )
    for look in seen[1:4]:
        assert look["library"] == "error"
        assert len(look["pools"]) == 4
        for pool in look["pools"].values():
            assert (pool["state"], pool["at"], pool["since"]) == ("unreadable", 99, 1100.0)
            assert "version mismatch; after a driver update" in pool["message"]
    assert {pool["state"] for pool in seen[4]["pools"].values()} == {"ok"}


def test_one_lost_device_takes_no_other_with_it_and_moves_nobody_s_figures(tmp_path: Path) -> None:
    seen = in_stub(
        tmp_path,
        """
a = card("GPU-A", 100)
b = lambda **more: card("GPU-B", 800, compute=[(800, 800 * MIB)], **more)
c = card("GPU-C", 900, compute=[(900, 900 * MIB)])
for tick in range(9, 42):
    if tick == 9: state.write([a, b(), c])
    if tick == 10: state.write([a, b(fail=GPU_IS_LOST), c])
    if tick == 20: state.write([a, c])
    if tick == 40: state.write([a, b(), c])
    seen.append(look(tick))
""",
    )
    for tick, look in enumerate(seen, start=9):
        pools = look["pools"]
        assert sorted(pools) == ["GPU-A", "GPU-B", "GPU-C"]
        for uuid, used in (("GPU-A", 100), ("GPU-C", 900)):
            assert (pools[uuid]["state"], pools[uuid]["at"], pools[uuid]["used"]) == ("ok", tick, used)
        assert pools["GPU-C"]["processes"] == [[900, 900]]
        lost = pools["GPU-B"]
        if 10 <= tick < 40:
            assert (lost["state"], lost["since"], lost["at"]) == ("lost", 1010.0, 9)
            assert lost["processes"] == []
            assert lost["message"] == ("GPU is lost" if tick < 20 else "the driver no longer lists it")
        else:
            assert (lost["state"], lost["since"], lost["at"]) == ("ok", None, tick)


def test_the_order_of_the_list_may_change_and_the_uuids_do_not(tmp_path: Path) -> None:
    seen = in_stub(
        tmp_path,
        """
a, b = card("GPU-A", 100), card("GPU-B", 700)
state.write([a, b]); seen.append(look())
state.write([b, a]); seen.append(look())
""",
    )
    assert [look["pools"]["GPU-B"]["used"] for look in seen] == [700, 700]
    assert [look["pools"]["GPU-B"]["index"] for look in seen] == [1, 0]


def test_a_device_that_refuses_its_memory_cannot_be_measured_and_says_so(tmp_path: Path) -> None:
    seen = in_stub(
        tmp_path,
        'state.write([card("GPU-0"), card("GPU-1", fail_memory=NOT_SUPPORTED)]); seen.append(look())',
    )[0]
    assert seen["pools"]["GPU-0"]["state"] == "ok"
    refused = seen["pools"]["GPU-1"]
    assert (refused["state"], refused["free"]) == ("unmeasured", None)
    assert refused["message"] == "cannot be measured: Not Supported"


def test_a_device_broken_from_the_start_is_a_note_and_no_pool(tmp_path: Path) -> None:
    body = 'state.write([card("GPU-0"), card("GPU-1", fail=GPU_IS_LOST)]); seen.append(look())'
    seen = in_stub(tmp_path, body)[0]
    assert list(seen["pools"]) == ["GPU-0"]
    assert "number 1 does not answer" in seen["notes"][0]


def test_an_older_driver_without_the_third_process_call_is_asked_by_the_second(tmp_path: Path) -> None:
    body = """
state.write([card("GPU-0", 900, compute=[(7, 900 * MIB)])], missing=[
    "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v2"])
seen.append(look())
"""
    pool = in_stub(tmp_path, body)[0]["pools"]["GPU-0"]
    assert (pool["processes"], pool["message"]) == ([[7, 900]], "")


def test_devices_known_from_before_stay_though_the_driver_was_never_up(tmp_path: Path) -> None:
    seen = in_stub(
        tmp_path,
        """
from calibration.domain.samples import PoolSample, PoolState
before = PoolSample("GPU-0", "vram", "gpu0", PoolState.OK, total=24 * 1024 * MIB, index=0)
nvml = Nvml(expected=[before], clock=lambda: now[0])
state.write(init=LIB_RM_VERSION_MISMATCH); seen.append(look())
""",
    )[0]
    assert seen["library"] == "error"
    assert seen["pools"]["GPU-0"]["state"] == "unreadable"
    assert seen["pools"]["GPU-0"]["at"] is None
