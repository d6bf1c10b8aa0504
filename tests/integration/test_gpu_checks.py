"""The script for a machine with a GPU, where there is none: it says what it could not check, never that all is well."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench import gpu_checks
from tests.builders import GIB, MIB
from tests.nvml_stub import DRIVER_NOT_LOADED, Device, State, build

ROOT = Path(__file__).parents[2]


def run(state: State, folder: Path, *arguments: str) -> tuple[int, str]:
    environ = {**os.environ, **state.environ(build(folder)), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "bench.gpu_checks", "--markdown", str(folder / "found.md"), *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def test_without_a_driver_nothing_is_checked_and_each_line_says_so(tmp_path: Path) -> None:
    state = State(tmp_path / "nvml.txt")
    state.write(init=DRIVER_NOT_LOADED)
    code, said = run(state, tmp_path)
    assert code == 3, said
    assert said.count("not checked: ") == len(gpu_checks.CHECKS)
    assert "no NVIDIA device 0: Driver Not Loaded" in said
    assert (tmp_path / "found.md").read_text().count("\n| ") == len(gpu_checks.CHECKS)


def test_with_a_driver_and_nothing_else_only_its_own_figures_are_checked(tmp_path: Path) -> None:
    state = State(tmp_path / "nvml.txt")
    state.write([Device("GPU-a", used=3 * GIB, reserved=600 * MIB)])
    code, said = run(state, tmp_path, "--torch", sys.executable)
    assert code == 3, said
    assert said.count("as expected: ") == 1
    assert "reserved 0.59 GiB, first call's used holds it: yes; remainder 0 bytes" in said
    assert "No module named 'torch'" in said


@pytest.mark.parametrize(
    "answers, code", [((True, True), 0), ((True, False), 1), ((True, "no root"), 3), ((False, "no root"), 1)]
)
def test_the_exit_code(monkeypatch: pytest.MonkeyPatch, answers: tuple[bool | str, ...], code: int) -> None:
    def check(answer: bool | str) -> gpu_checks.Check:
        def found(_: gpu_checks.Bench) -> tuple[bool, str]:
            if isinstance(answer, str):
                raise gpu_checks.Lacks(answer)
            return answer, "x | y"

        return found

    monkeypatch.setattr(gpu_checks, "CHECKS", tuple(check(answer) for answer in answers))
    monkeypatch.setattr(gpu_checks.pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(gpu_checks.Bench, "handle", lambda _: None)
    bench = gpu_checks.Bench((), "", 0)
    assert gpu_checks.run(bench) == code
    assert "x / y" in gpu_checks.markdown(bench.told)
