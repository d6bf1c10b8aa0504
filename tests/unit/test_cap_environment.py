"""What a command is told of its caps: a figure per device, shares, contexts, and what was set by hand stays."""

from __future__ import annotations

import pytest

from placement.domain.containing.cap_environment import DeviceCap, cap_variables, mps_variables, sharers, shim_variables
from tests.builders import GIB, MIB

ONE = (DeviceCap("GPU-a", 6 * GIB, 24 * GIB, 20 * GIB),)
TWO = (*ONE, DeviceCap("GPU-b", 12 * GIB, 48 * GIB, 48 * GIB))


def test_one_device_in_every_tongue() -> None:
    found = cap_variables(ONE, {}, 512 * MIB)
    assert found.kept == ()
    assert found.variables == {
        "TIDEGATE_VRAM_CAP_BYTES": str(6 * GIB),
        "TIDEGATE_VRAM_CAP_MIB": "6144",
        "TIDEGATE_VRAM_CAPS": f"GPU-a={6 * GIB}",
        "TIDEGATE_VRAM_CONTEXT_BYTES": str(512 * MIB),
        "TIDEGATE_GPU_FRACTION": "0.250",
        "LLAMA_ARG_FIT_TARGET": str(14 * 1024),
        "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.22",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        "CUPY_GPU_MEMORY_LIMIT": str(6 * GIB - 512 * MIB),
    }


def test_several_devices_have_a_figure_each_and_single_figures_hold_on_all() -> None:
    told = cap_variables(TWO, {}, 0).variables
    assert told["TIDEGATE_VRAM_CAPS"] == f"GPU-a={6 * GIB},GPU-b={12 * GIB}"
    assert (told["TIDEGATE_VRAM_CAP_BYTES"], told["CUPY_GPU_MEMORY_LIMIT"]) == (str(6 * GIB), str(6 * GIB))
    assert told["TIDEGATE_GPU_FRACTION"] == "0.250"
    assert float(told["XLA_PYTHON_CLIENT_MEM_FRACTION"]) * 48 <= 6, "on neither card more than the smaller cap"
    assert told["LLAMA_ARG_FIT_TARGET"] == str(36 * 1024)


def test_processes_that_are_known_share_the_cap_with_a_context_each() -> None:
    told = cap_variables(ONE, {"TIDEGATE_GPU_PROCESSES": "4"}, 512 * MIB).variables
    assert told["CUPY_GPU_MEMORY_LIMIT"] == str(1024 * MIB)
    assert told["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.04"
    assert told["TIDEGATE_VRAM_CAP_BYTES"] == str(6 * GIB), "the job's own cap is not divided"


@pytest.mark.parametrize("said", ["0", "-1", "x", "", "²", "99999999999"])
def test_a_number_of_processes_that_is_none_is_nothing_said(said: str) -> None:
    assert sharers({"TIDEGATE_GPU_PROCESSES": said}) is None


def test_what_the_submission_sets_stands_and_is_named_without_its_value() -> None:
    own = {"LLAMA_ARG_FIT_TARGET": "4096", "XLA_CLIENT_MEM_FRACTION": ".5", "TF_FORCE_GPU_ALLOW_GROWTH": "false"}
    found = cap_variables(ONE, own, 0)
    assert found.kept == tuple(sorted(own))
    assert not set(found.variables) & {*own, "XLA_PYTHON_CLIENT_MEM_FRACTION"}


def test_the_fraction_of_a_job_stays_within_its_cap_on_the_card() -> None:
    cap = DeviceCap("GPU-a", 10800 * MIB, 24000 * MIB)
    assert float(cap_variables((cap,), {}, 400 * MIB).variables["XLA_PYTHON_CLIENT_MEM_FRACTION"]) <= 10400 / 24000


def test_llama_leaves_enough_by_itself_where_the_cap_is_nearly_all() -> None:
    assert (
        "LLAMA_ARG_FIT_TARGET"
        not in cap_variables((DeviceCap("GPU-a", 23 * GIB, 24 * GIB, 24 * GIB),), {}, 0).variables
    )


@pytest.mark.parametrize(
    "caps", [(), (DeviceCap("GPU-a", GIB),)], ids=["no cap: nothing to tell", "a device of unknown size: no share"]
)
def test_what_nobody_knows_is_told_to_nobody(caps: tuple[DeviceCap, ...]) -> None:
    told = cap_variables(caps, {}, 0).variables
    assert not {"TIDEGATE_GPU_FRACTION", "LLAMA_ARG_FIT_TARGET", "XLA_PYTHON_CLIENT_MEM_FRACTION"} & set(told)


def test_the_shim_stands_first_and_can_be_turned_off() -> None:
    assert shim_variables("/s", "/mine:/too", {}) == {"PYTHONPATH": "/s:/mine:/too"}
    assert shim_variables("/s", "", {}) == {"PYTHONPATH": "/s"}
    assert shim_variables("/s", "/mine", {"TIDEGATE_SHIM": "0"}) == {}


def test_mps_is_told_of_whole_devices_by_uuid_or_of_none() -> None:
    found = mps_variables(TWO, "/tmp/nvidia-mps")
    assert found["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "GPU-a=6144M,GPU-b=12288M"
    assert found["CUDA_MPS_PIPE_DIRECTORY"] == "/tmp/nvidia-mps"
    assert mps_variables((*ONE, DeviceCap("MIG-b", GIB)), "/tmp/nvidia-mps") == {}
