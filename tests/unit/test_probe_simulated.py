from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.probes import simgpu
from calibration.probes.simgpu import Point, level, parse_shape, parse_size, start_ticks
from calibration.probes.simulated import SimulatedDevices, parse_spec

GIB = 2**30


@pytest.mark.parametrize(
    "spec, expected",
    [
        ("2x24GiB", [24 * GIB] * 2),
        ("2x24GiB,1x80GiB", [24 * GIB, 24 * GIB, 80 * GIB]),
        ("24GiB", [24 * GIB]),
        ("1x16GB", [16 * 10**9]),
        ("", []),
    ],
)
def test_a_spec_names_each_device(spec: str, expected: list[int]) -> None:
    assert parse_spec(spec) == expected


@pytest.mark.parametrize(
    "spec", ["2x", "x24GiB", "two", "2x24", "2x0GiB", "-1x24GiB", "2x24 gib", "1x1e400GiB", "1x1e30GiB", "0x24GiB"]
)
def test_a_spec_that_means_nothing_is_a_sentence_with_the_form(spec: str) -> None:
    if spec == "2x24":  # a number alone is bytes, as everywhere
        assert parse_spec(spec) == [24, 24]
        return
    with pytest.raises(ValueError, match="such as 2x24GiB"):
        parse_spec(spec)


@pytest.mark.parametrize(
    "text, expected",
    [("6GiB", 6 * GIB), ("800MB", 800_000_000), ("1.5kB", 1500), ("1KiB", 1024), ("12", 12), ("12 B", 12)],
)
def test_a_size_with_its_unit(text: str, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize("text", ["", "GiB", "six", "-1GiB", "1 parsec", "inf", "nan"])
def test_a_size_that_means_nothing_names_the_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


def test_a_shape_that_goes_back_in_time_is_refused() -> None:
    with pytest.raises(ValueError, match="go back"):
        parse_shape("5:1GiB,0:2GiB")


@pytest.mark.parametrize("at, steps, line", [(0, 0, 0), (1, 100, 100), (2, 100, 200), (3, 300, 300), (9, 300, 300)])
def test_a_level_between_two_points(at: float, steps: int, line: int) -> None:
    shape = [Point(1, 100), Point(3, 300)]
    assert (level(shape, at, linear=False), level(shape, at, linear=True)) == (steps, line)


@given(
    sizes=st.lists(st.integers(0, 2**40), min_size=1, max_size=5),
    at=st.floats(0, 10, allow_nan=False),
    linear=st.booleans(),
)
def test_a_level_is_never_outside_its_points(sizes: list[int], at: float, linear: bool) -> None:
    shape = [Point(float(second), size) for second, size in enumerate(sizes)]
    assert min(sizes) <= level(shape, at, linear) <= max(sizes)


def test_the_uuids_are_the_same_after_a_restart_and_safe_as_names(tmp_path: Path) -> None:
    first = [d.uuid for d in SimulatedDevices(tmp_path, "2x24GiB", "rack 1/n1").devices]
    again = [d.uuid for d in SimulatedDevices(tmp_path, "2x24GiB", "rack 1/n1").devices]
    assert first == again == ["SIM-rack-1-n1-0", "SIM-rack-1-n1-1"]


@pytest.mark.parametrize("held", [str(10**30), "-5", "NaN", "1e9", "", "9" * 500])
def test_a_figure_that_nobody_can_hold_is_passed_over(tmp_path: Path, held: str) -> None:
    devices = SimulatedDevices(tmp_path, "1x24GiB", "atlas")
    me, ticks = os.getpid(), start_ticks(os.getpid())
    claim = tmp_path / devices.devices[0].uuid / f"{me}.{ticks}"
    claim.write_text(f"{held} 0.5 1")
    assert (devices.look()[0].used, devices.look()[0].processes) == (0, ())
    claim.write_text(f"{GIB} NaN 1")
    assert (devices.look()[0].used, devices.look()[0].busy) == (GIB, 0.0)


def test_two_threads_that_write_one_file_at_once_both_succeed(tmp_path: Path) -> None:
    target = str(tmp_path / "table")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: simgpu.write_file(target, f"{n}" * 200), range(400)))
    assert [file.name for file in tmp_path.iterdir()] == ["table"]
    text = Path(target).read_text()
    assert text == text[: len(text) // 200] * 200
