"""Real pynvml on the stub library, for hardware that is no plain card: MIG, one pool for all, old lists, two calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.integration.test_probe_nvml import in_stub

MIG = """
def mig(*parts, **more):
    return Device("GPU-A", total=40960 * MIB, mig=True, parts=list(parts), name="NVIDIA A100-SXM4-40GB", **more)
def part(uuid, total, used, **more):
    return Device(uuid, total=total * MIB, used=used * MIB, name="NVIDIA A100-SXM4-40GB MIG", busy=None, **more)
AAA = part("MIG-aaa", 19968, 5000, compute=[(70, 4800 * MIB, 1, 0)])
BBB, CCC = part("MIG-bbb", 9856, 13), part("MIG-ccc", 9856, 13)
NO = dict(fail_memory=NO_PERMISSION)
"""


def shown(look: dict[str, Any], *names: str) -> dict[str, tuple[Any, ...]]:
    return {uuid: tuple(pool[name] for name in names) for uuid, pool in look["pools"].items()}


def test_the_instances_are_the_devices_and_a_parent_that_may_not_be_asked_is_their_heading(tmp_path: Path) -> None:
    look = in_stub(tmp_path, MIG + "state.write([mig(AAA, BBB, **NO)]); seen.append(look())")[0]
    assert shown(look, "state", "name", "parent", "used", "free") == {
        "GPU-A": ("heading", "gpu0", "", None, None),
        "MIG-aaa": ("ok", "gpu0.0", "GPU-A", 5000, 14968),
        "MIG-bbb": ("ok", "gpu0.1", "GPU-A", 13, 9843),
    }
    assert look["pools"]["MIG-aaa"]["processes"] == [[70, 4800]]
    assert look["pools"]["GPU-A"]["message"] == "MIG on, 2 instances"
    assert look["notes"] == []


def test_a_parent_that_tells_its_use_does_not_make_it_twice(tmp_path: Path) -> None:
    look = in_stub(tmp_path, MIG + "state.write([mig(AAA, BBB, used=5013 * MIB)]); seen.append(look())")[0]
    assert shown(look, "state", "used")["GPU-A"] == ("heading", 5013)
    assert sum(pool["used"] for pool in look["pools"].values() if pool["state"] == "ok") == 5013


def test_an_instance_that_was_made_anew_is_another_device_and_the_old_one_is_gone(tmp_path: Path) -> None:
    looks = in_stub(
        tmp_path,
        MIG
        + """
state.write([mig(AAA, BBB, **NO)]); look()
state.write([mig(AAA, CCC, **NO)]); seen.append(look())
nvml.forget(["MIG-bbb"]); seen.append(look())
state.write([mig(**NO)]); seen.append(look())
state.write([Device("GPU-A", total=40960 * MIB)]); seen.append(look())
""",
    )
    assert shown(looks[0], "state", "name", "message")["MIG-bbb"] == ("gone", "gpu0.1", "this MIG instance was removed")
    assert shown(looks[0], "state", "name")["MIG-ccc"] == ("ok", "gpu0.1")
    assert set(looks[1]["pools"]) == {"GPU-A", "MIG-aaa", "MIG-ccc"}
    assert looks[2]["pools"]["GPU-A"]["message"] == "MIG on, no instances"
    assert shown(looks[2], "state")["MIG-aaa"] == ("gone",)
    assert shown(looks[3], "state", "free") == {
        "GPU-A": ("ok", 40960),
        "MIG-aaa": ("gone", 14968),
        "MIG-ccc": ("gone", 9843),
    }


def test_instances_of_a_parent_that_fell_off_the_bus_are_lost_and_not_gone(tmp_path: Path) -> None:
    look = in_stub(
        tmp_path,
        MIG + "state.write([mig(AAA, **NO)]); look(); state.write([mig(AAA, fail=GPU_IS_LOST)]); seen.append(look())",
    )[0]
    assert shown(look, "state") == {"GPU-A": ("lost",), "MIG-aaa": ("lost",)}


def test_a_device_that_shares_main_memory_is_no_broken_one_and_its_processes_are_listed(tmp_path: Path) -> None:
    bodies = """
for name, fails, total in (("NVIDIA GB10", NOT_SUPPORTED, 1), ("NVIDIA GB10", 0, 0), ("Orin (nvgpu)", 0, 7 * MIB)):
    state.write([Device("GPU-0", total=total, name=name, fail_memory=fails, compute=[(300, 20480 * MIB)])])
    seen.append(look())
"""
    for look in in_stub(tmp_path, bodies):
        pool = look["pools"]["GPU-0"]
        assert (pool["state"], pool["shares"], pool["processes"]) == ("unmeasured", True, [[300, 20480]])


def test_a_card_of_its_own_memory_that_does_not_tell_it_cannot_be_measured(tmp_path: Path) -> None:
    body = """
state.write([Device("GPU-0", name="NVIDIA RTX 4090", fail_memory=NOT_SUPPORTED), Device("GPU-1", total=0)])
seen.append(look())
"""
    pools = in_stub(tmp_path, body)[0]["pools"]
    assert {(pool["state"], pool["shares"]) for pool in pools.values()} == {("unmeasured", False)}
    assert pools["GPU-0"]["message"] == "cannot be measured: Not Supported"
    assert pools["GPU-1"]["message"] == "cannot be measured: the driver tells a size of 0"


def test_of_three_lists_the_largest_figure_counts_and_their_sum_never(tmp_path: Path) -> None:
    body = """
state.write([card("GPU-0", 9000, compute=[(1, 700 * MIB), (2, None)], graphics=[(1, 900 * MIB)],
                  mps=[(1, 800 * MIB), (2, 300 * MIB), (3, None)])])
seen.append(look())
"""
    assert in_stub(tmp_path, body)[0]["pools"]["GPU-0"]["processes"] == [[1, 900], [2, 300], [3, None]]


def test_a_driver_that_knows_only_the_first_form_of_the_lists_is_asked_by_it(tmp_path: Path) -> None:
    body = """
names = [f"nvmlDeviceGet{kind}RunningProcesses{form}" for kind in ("Compute", "Graphics", "MPSCompute")
         for form in ("_v3", "_v2")]
state.write([card("GPU-0", 900, compute=[(1, 700 * MIB), (2, None)], graphics=[(3, 5 * MIB)]), card("GPU-1")],
            missing=names)
seen.append(look())
"""
    pools = in_stub(tmp_path, body)[0]["pools"]
    assert pools["GPU-0"]["processes"] == [[1, 700], [2, None], [3, 5]]
    assert (pools["GPU-1"]["processes"], pools["GPU-1"]["message"]) == ([], "")
