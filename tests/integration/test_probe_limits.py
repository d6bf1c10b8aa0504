"""Limits per control group, through real pynvml on the stub driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibration.probes import limits
from tests.builders import GIB
from tests.nvml_stub import DRIVER_NOT_LOADED, NO_PERMISSION, NOT_SUPPORTED, Device, State, build


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    made = State(tmp_path / "nvml.txt")
    made.write([Device("GPU-a")])
    for name, value in made.environ(build(tmp_path)).items():
        monkeypatch.setenv(name, value)
    return made


def test_a_limit_is_set_read_back_and_taken_away_with_no_soft_one(state: State, tmp_path: Path) -> None:
    group = str(tmp_path)
    assert limits.set_limit("GPU-a", group, 12 * GIB) == limits.Answer("", True, limits.Limit(12 * GIB, 0))
    state.write([Device("GPU-a")], groups={group: 11 * GIB})
    assert limits.read("GPU-a", group).limit == limits.Limit(12 * GIB, 11 * GIB)
    assert limits.clear("GPU-a", group).limit == limits.Limit(None, 11 * GIB)
    assert [row[2:] for row in state.kept_limits()] == [["0", str(12 * GIB)], ["0", str(limits.NONE)]]


@pytest.mark.parametrize(
    "machine, able, word",
    [
        pytest.param({"limits": NO_PERMISSION}, False, "Insufficient Permissions", id="not root"),
        pytest.param({"limits": NOT_SUPPORTED}, False, "Not Supported", id="a card that cannot"),
        pytest.param({"missing": ["nvmlDeviceSetMemoryLimits_v1"]}, False, "Function Not Found", id="a driver before"),
        pytest.param({"init": DRIVER_NOT_LOADED}, False, "Driver Not Loaded", id="no driver"),
    ],
)
def test_what_cannot_be_done_is_told_in_the_drivers_words(
    state: State, tmp_path: Path, machine: dict[str, object], able: bool, word: str
) -> None:
    state.write([Device("GPU-a")], **machine)  # type: ignore[arg-type]
    answer = limits.set_limit("GPU-a", str(tmp_path), GIB)
    assert (answer.able, answer.limit) == (able, None)
    assert word.lower() in answer.error.lower()


def test_a_library_without_the_calls_and_a_group_that_is_gone(
    state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert limits.set_limit("GPU-a", "/nowhere", GIB).able
    monkeypatch.setenv("LD_LIBRARY_PATH", str(build(tmp_path, defines=("WITHOUT_LIMITS",))))
    assert not limits.set_limit("GPU-a", str(tmp_path), GIB).able
    assert state.kept_limits() == []


def test_a_driver_that_hangs_is_given_up(state: State, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(limits, "WITHIN_S", 0.001)
    answer = limits.set_limit("GPU-a", str(tmp_path), GIB)
    assert (answer.able, "did not answer within" in answer.error) == (True, True)
