from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.domain.world.asks import Ask, counts, shares
from placement.domain.world.devices import Backend, Kind
from tests.slots import an_ask


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        pytest.param({"bytes": 0}, ValueError, id="nothing"),
        pytest.param({"bytes": 1, "kind": Kind.CPU}, ValueError, id="a CPU"),
        pytest.param({"bytes": 1, "min_devices": 3, "max_devices": 2}, ValueError, id="at least more than at most"),
        pytest.param({"bytes": 1, "max_devices": 0}, ValueError, id="at most none"),
        pytest.param({"bytes": 1, "min_devices": 0}, ValueError, id="at least none"),
        pytest.param({"bytes": 1, "device_id": 0, "max_devices": 2}, ValueError, id="two devices of one id"),
        pytest.param({"bytes": 1, "device_id": -1}, ValueError, id="an id below zero"),
        pytest.param({"bytes": 1, "device_id": True}, TypeError, id="an id that is True"),
        pytest.param({"bytes": 1.5}, TypeError, id="part of a byte"),
        pytest.param({"bytes": -1}, ValueError, id="less than nothing"),
        pytest.param({"per_device_bytes": -1}, ValueError, id="less than nothing on each"),
        pytest.param({"bytes": 1, "exclusive": 1}, TypeError, id="alone, as a number"),
        pytest.param({"bytes": 1, "prefer_max": 1}, TypeError, id="many first, as a number"),
        pytest.param({"bytes": 1, "even": 0}, TypeError, id="uneven, as a number"),
        pytest.param({"bytes": 1, "max_devices": True}, TypeError, id="True devices"),
        pytest.param({"bytes": 1, "backend": None}, TypeError, id="no backend"),
        pytest.param({"bytes": 1, "kind": "gpu"}, TypeError, id="a kind as text"),
        pytest.param({"bytes": 1, "node": 3}, TypeError, id="a node that is a number"),
    ],
)
def test_what_cannot_be_asked_for(bad: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        an_ask(**bad)


def test_no_memory_can_be_asked_for_alone() -> None:
    assert an_ask(exclusive=True).group_bytes == 0


def test_equal_asks_are_equal() -> None:
    assert {an_ask(1), an_ask(1)} == {Ask(Kind.GPU, Backend.CUDA, 10**9)}


@pytest.mark.parametrize(
    ("group", "each", "count", "expected"),
    [(10, 0, 3, (4, 3, 3)), (2, 0, 4, (1, 1, 0, 0)), (0, 5, 3, (5, 5, 5)), (10, 5, 3, (9, 8, 8))],
)
def test_shares(group: int, each: int, count: int, expected: tuple[int, ...]) -> None:
    assert shares(an_ask(bytes=group, per_device_bytes=each, count=count), count) == expected


def test_shares_of_a_number_that_was_not_asked_for() -> None:
    with pytest.raises(ValueError, match="4 devices are not among the 2 to 3"):
        shares(an_ask(1, min_devices=2, max_devices=3), 4)


@pytest.mark.parametrize(("prefer_max", "expected"), [(False, [2, 3, 4]), (True, [4, 3, 2])])
def test_numbers_of_devices(prefer_max: bool, expected: list[int]) -> None:
    assert list(counts(an_ask(1, min_devices=2, max_devices=4, prefer_max=prefer_max))) == expected


@given(st.integers(0, 10**12), st.integers(0, 10**9), st.integers(1, 64))
def test_shares_are_the_whole_and_one_byte_apart_at_most(group: int, each: int, count: int) -> None:
    divided = shares(an_ask(bytes=group, per_device_bytes=each, count=count, exclusive=True), count)

    assert sum(divided) == group + count * each
    assert len(divided) == count
    assert divided[0] - divided[-1] in (0, 1)
    assert list(divided) == sorted(divided, reverse=True)
