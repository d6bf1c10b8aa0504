from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.domain.world.devices import (
    Backend,
    Device,
    Kind,
    declare,
    declared,
    gb_to_bytes_down,
    gb_to_bytes_up,
)

GPU: dict[str, Any] = {"kind": Kind.GPU, "backends": (Backend.CUDA,), "id": 0, "memory_gb": 8}


@pytest.mark.parametrize(
    ("gb", "capacity", "request_"),
    [
        (1, 1_000_000_000, 1_000_000_000),
        (0.1, 100_000_000, 100_000_000),
        (0.15, 150_000_000, 150_000_000),
        (0.3, 300_000_000, 300_000_000),
        (0.1 + 0.2, 300_000_000, 300_000_001),
        (1 / 3, 333_333_333, 333_333_334),
        (1e-9, 1, 1),
    ],
)
def test_capacities_are_rounded_down_and_requests_up(gb: float, capacity: int, request_: int) -> None:
    assert gb_to_bytes_down(gb) == capacity
    assert gb_to_bytes_up(gb) == request_


def test_less_than_a_byte_can_be_asked_for_as_one_but_is_no_capacity() -> None:
    assert gb_to_bytes_up(1e-10) == 1
    with pytest.raises(ValueError, match="less than one byte"):
        gb_to_bytes_down(1e-10)


@pytest.mark.parametrize("gb", [0, 0.0, -0.0])
def test_zero_is_an_amount_only_where_it_may_be_asked_for(gb: float) -> None:
    assert gb_to_bytes_up(gb, zero=True) == 0
    with pytest.raises(ValueError):
        gb_to_bytes_up(gb)
    with pytest.raises(ValueError):
        gb_to_bytes_down(gb)


@pytest.mark.parametrize(
    ("gb", "error"),
    [
        (-1, ValueError),
        (True, TypeError),
        (False, TypeError),
        ("1", TypeError),
        (None, TypeError),
        (math.inf, ValueError),
        (math.nan, ValueError),
    ],
)
def test_what_is_no_amount(gb: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        gb_to_bytes_down(gb)
    with pytest.raises(error):
        gb_to_bytes_up(gb)
    with pytest.raises(error):
        gb_to_bytes_up(gb, zero=True)


def test_the_flag_for_zero_is_a_flag() -> None:
    with pytest.raises(TypeError):
        gb_to_bytes_up(1, zero=1)  # type: ignore[arg-type]


@given(st.floats(1e-9, 1e6))
def test_what_is_asked_for_is_never_less_than_the_same_capacity_and_at_most_a_byte_more(gb: float) -> None:
    assert 0 <= gb_to_bytes_up(gb) - gb_to_bytes_down(gb) <= 1


@pytest.mark.parametrize(
    "good",
    [
        pytest.param({}, id="a CPU"),
        pytest.param({"memory_gb": 8}, id="a CPU with a limit"),
        pytest.param(GPU, id="a GPU"),
        pytest.param(GPU | {"kind": Kind.TPU}, id="a TPU that speaks CUDA"),
    ],
)
def test_what_can_be_declared(good: dict[str, Any]) -> None:
    assert declare(**good).exclusive_only is False


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        ({"backends": (Backend.CUDA,)}, ValueError),
        ({"id": 0}, ValueError),
        ({"exclusive_only": True}, ValueError),
        (GPU | {"backends": ()}, ValueError),
        (GPU | {"id": None}, ValueError),
        (GPU | {"memory_gb": None}, ValueError),
        (GPU | {"backends": (Backend.CUDA, Backend.CUDA)}, ValueError),
        (GPU | {"backends": [Backend.CUDA]}, TypeError),
        (GPU | {"backends": ("cuda",)}, TypeError),
        (GPU | {"memory_gb": 0}, ValueError),
        (GPU | {"memory_gb": math.inf}, ValueError),
        (GPU | {"memory_gb": math.nan}, ValueError),
        (GPU | {"memory_gb": 1e-12}, ValueError),
        (GPU | {"memory_gb": True}, TypeError),
        (GPU | {"id": -1}, ValueError),
        (GPU | {"id": True}, TypeError),
        (GPU | {"exclusive_only": 1}, TypeError),
        (GPU | {"kind": "gpu"}, TypeError),
    ],
)
def test_what_cannot_be_declared(bad: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        declare(**bad)


def test_a_node_has_one_cpu_and_each_id_once_of_a_kind() -> None:
    gpu, tpu = declare(**GPU), declare(**GPU | {"kind": Kind.TPU})

    assert [d.kind for d in declared()] == [Kind.CPU]
    assert [d.kind for d in declared(gpu)] == [Kind.GPU, Kind.CPU]
    assert [d.kind for d in declared((gpu, tpu))] == [Kind.GPU, Kind.TPU, Kind.CPU]
    assert declared((Device(capacity=5), gpu)) == (Device(capacity=5), gpu)
    with pytest.raises(ValueError, match="GPU 0 is declared twice"):
        declared((gpu, gpu))
    with pytest.raises(ValueError, match="The CPU is declared twice"):
        declared((Device(), Device(capacity=5)))
    with pytest.raises(TypeError):
        declared([gpu])  # type: ignore[arg-type]
