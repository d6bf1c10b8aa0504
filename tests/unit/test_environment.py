"""The environment of a command: built from nothing, devices by index, frameworks within the cap, secrets hidden."""

from __future__ import annotations

import pytest

from placement.domain.containing.environment import (
    BadVariable,
    build_environment,
    framework_variables,
    overruled,
    shown,
)
from placement.domain.containing.visible import Seen, device_variables
from tests.builders import GIB, MIB


def test_a_job_without_a_device_sees_none() -> None:
    variables = device_variables(())
    assert variables["CUDA_VISIBLE_DEVICES"] == ""
    assert variables["HIP_VISIBLE_DEVICES"] == "-1"
    assert variables["TIDEGATE_DEVICE_UUIDS"] == ""


@pytest.mark.parametrize(
    ("uuid", "index", "by_uuid", "seen"),
    [
        pytest.param("GPU-b", 1, False, "1", id="the index of this moment"),
        pytest.param("MIG-7", 0, False, "MIG-7", id="an instance has only its UUID"),
        pytest.param("GPU-b", 1, True, "GPU-b", id="a workload may ask for the UUID"),
        pytest.param("GPU-b", None, False, "GPU-b", id="no index is known"),
    ],
)
def test_a_device_is_named(uuid: str, index: int | None, by_uuid: bool, seen: str) -> None:
    variables = device_variables([Seen(uuid, index)], by_uuid=by_uuid)
    assert variables == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": seen,
        "TIDEGATE_DEVICE_UUIDS": uuid,
        "TIDEGATE_DEVICE_INDICES": "" if seen == uuid else seen,
    }


def test_the_other_runtime_renumbers_after_its_own_filter() -> None:
    variables = device_variables([Seen("GPU-b", 3, ("ROCM",))])
    assert variables["ROCR_VISIBLE_DEVICES"] == "3"
    assert variables["HIP_VISIBLE_DEVICES"] == variables["CUDA_VISIBLE_DEVICES"] == "0"


def test_whoever_asks_for_more_sees_several_devices_in_the_order_given() -> None:
    assert device_variables([Seen("GPU-b", 3), Seen("GPU-a", 0)]) == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "3,0",
        "TIDEGATE_DEVICE_UUIDS": "GPU-b,GPU-a",
        "TIDEGATE_DEVICE_INDICES": "3,0",
    }
    rocm = device_variables([Seen("GPU-b", 3, ("ROCM",)), Seen("GPU-a", 0, ("ROCM",))])
    assert (rocm["ROCR_VISIBLE_DEVICES"], rocm["HIP_VISIBLE_DEVICES"]) == ("3,0", "0,1")
    assert device_variables([Seen("GPU-b", 3), Seen("MIG-a", 0)])["CUDA_VISIBLE_DEVICES"] == "GPU-b,MIG-a"
    assert device_variables([Seen("GPU-b", None)])["TIDEGATE_DEVICE_INDICES"] == ""
    assert device_variables([])["CUDA_VISIBLE_DEVICES"] == ""


def test_a_number_that_is_not_known_is_not_the_number_0() -> None:
    seen = [Seen("GPU-a", None, ("ROCM",)), Seen("TPU-b", None, ("XLA",), "TPU")]
    variables = device_variables(seen, there=("ROCM", "XLA", "TPU"))
    assert (variables["ROCR_VISIBLE_DEVICES"], variables["TPU_VISIBLE_CHIPS"]) == ("-1", "-1")
    assert (variables["TIDEGATE_DEVICE_UUIDS"], variables["TIDEGATE_DEVICE_INDICES"]) == ("GPU-a,TPU-b", "")


def test_each_interface_has_its_own_mask_and_what_is_declared_besides_is_hidden() -> None:
    tpu = [Seen("HAND-a", 3, ("XLA",), "TPU"), Seen("HAND-b", 1, ("XLA",), "TPU")]
    on = device_variables(tpu, there={"XLA", "TPU", "CUDA", "XPU"})
    assert (on["TPU_VISIBLE_CHIPS"], on["ZE_AFFINITY_MASK"], on["CUDA_VISIBLE_DEVICES"]) == ("1,3", "9999", "")
    assert on["TIDEGATE_DEVICE_INDICES"] == "3,1"
    beside = device_variables([Seen("GPU-a", 0)], there={"CUDA", "ROCM", "XLA", "TPU"})
    assert (beside["TPU_VISIBLE_CHIPS"], beside["HIP_VISIBLE_DEVICES"], beside["CUDA_VISIBLE_DEVICES"]) == (
        "-1",
        "-1",
        "0",
    )
    rocm = device_variables([Seen("HAND-c", 1, ("ROCM", "OPENCL"))], there={"CUDA", "ROCM", "OPENCL"})
    assert (rocm["ROCR_VISIBLE_DEVICES"], rocm["HIP_VISIBLE_DEVICES"], rocm["CUDA_VISIBLE_DEVICES"]) == ("1", "0", "")
    xpu = device_variables([Seen("HAND-d", 2, ("XPU",))], there={"XPU"})
    assert (xpu["ZE_AFFINITY_MASK"], xpu["CUDA_VISIBLE_DEVICES"]) == ("2", "")
    opencl = device_variables([Seen("HAND-e", 0, ("OPENCL",))], there={"OPENCL"})
    assert not {"ZE_AFFINITY_MASK", "TPU_VISIBLE_CHIPS"} & opencl.keys()


class TestFrameworks:
    def test_the_share_is_the_cap_less_a_context_of_the_whole_device(self) -> None:
        found = framework_variables(6000 * MIB, 24000 * MIB, {}, 512 * MIB)
        assert found.variables == {
            "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.22",
            "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
            "TF_FORCE_GPU_ALLOW_GROWTH": "true",
            "CUPY_GPU_MEMORY_LIMIT": str(5488 * MIB),
            "TIDEGATE_VRAM_CAP_BYTES": str(6000 * MIB),
        }
        assert found.kept == {}

    @pytest.mark.parametrize("name", ["XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"])
    def test_a_share_that_the_user_set_is_kept_and_never_set_twice(self, name: str) -> None:
        found = framework_variables(6 * GIB, 24 * GIB, {name: ".5"}, 0)
        assert not [v for v in found.variables if "MEM_FRACTION" in v]
        assert found.kept == {name: ".5"}

    def test_other_values_of_the_user_are_kept_too(self) -> None:
        own = {"XLA_PYTHON_CLIENT_PREALLOCATE": "true", "CUPY_GPU_MEMORY_LIMIT": "50%"}
        found = framework_variables(6 * GIB, 24 * GIB, own, 0)
        assert found.kept == own
        assert not set(own) & set(found.variables)

    def test_a_cap_below_one_context_never_becomes_no_limit(self) -> None:
        found = framework_variables(256 * MIB, 80 * GIB, {}, 512 * MIB)
        assert found.variables["CUPY_GPU_MEMORY_LIMIT"] == "1"
        assert found.variables["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.01"

    def test_without_a_cap_only_preallocation_is_off(self) -> None:
        found = framework_variables(None, None, {}, 512 * MIB)
        assert set(found.variables) == {"XLA_PYTHON_CLIENT_PREALLOCATE", "TF_FORCE_GPU_ALLOW_GROWTH"}


def test_later_layers_win_and_ours_cannot_be_replaced() -> None:
    base = {"PATH": "/bin", "HOME": "/home/a"}
    own = {"B": "3", "CUDA_VISIBLE_DEVICES": "0,1"}
    built = build_environment(base, {"A": "1"}, {"A": "2", "B": "2"}, own, device_variables([Seen("GPU-b", 1)]))
    assert (built["A"], built["B"], built["CUDA_VISIBLE_DEVICES"]) == ("2", "3", "1")
    assert built["LANG"] == "C.UTF-8"
    assert overruled(own, built) == {"CUDA_VISIBLE_DEVICES": "0,1"}


@pytest.mark.parametrize("variables", [{"1A": "x"}, {"A B": "x"}, {"": "x"}, {"A=B": "x"}, {"A": "x\0y"}])
def test_what_no_process_can_be_given_is_refused(variables: dict[str, str]) -> None:
    with pytest.raises(BadVariable):
        build_environment({}, {}, {}, variables, {})


@pytest.mark.parametrize(
    "name",
    [
        "WANDB_API_KEY",
        "HF_TOKEN",
        "DB_PASSWORD",
        "AWS_SECRET_ACCESS_KEY",
        "PGPASSWORD",
        "SENTRY_DSN",
        "GH_PAT",
        "MY_AUTH",
    ],
)
def test_what_looks_secret_is_masked(name: str) -> None:
    assert shown({name: "hunter2"}) == {name: "•••"}


def test_plain_values_are_shown_and_passwords_in_addresses_are_not() -> None:
    variables = {"PWD": "/tmp", "KEYBOARD": "de", "PATH": "/bin", "PROXY": "http://bob:hunter2@proxy:80/"}
    assert shown(variables) == {
        "PWD": "/tmp",
        "KEYBOARD": "de",
        "PATH": "/bin",
        "PROXY": "http://bob:•••@proxy:80/",
    }


def test_a_group_is_seen_in_the_order_of_its_grant() -> None:
    assert device_variables([Seen("GPU-b", 1), Seen("GPU-a", 0)]) == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "1,0",
        "TIDEGATE_DEVICE_UUIDS": "GPU-b,GPU-a",
        "TIDEGATE_DEVICE_INDICES": "1,0",
    }
    assert device_variables([Seen("GPU-b", 1), Seen("GPU-a", None)])["CUDA_VISIBLE_DEVICES"] == "GPU-b,GPU-a"
    contained = device_variables([Seen("GPU-b", 1), Seen("GPU-a", 0)], by_uuid=True)
    assert contained["CUDA_VISIBLE_DEVICES"] == "GPU-b,GPU-a", "a container has other indices than the machine"
    rocm = device_variables([Seen("GPU-b", 3, ("ROCM",)), Seen("GPU-a", 0, ("ROCM",))])
    assert (rocm["ROCR_VISIBLE_DEVICES"], rocm["HIP_VISIBLE_DEVICES"]) == ("3,0", "0,1")
