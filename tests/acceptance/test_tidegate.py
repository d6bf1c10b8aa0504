"""The shell command on machines where something is missing: one sentence, and exit 2."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
# What the shell file itself calls, besides Python.
TOOLS = ("sh", "dirname", "rm", "cat", "cksum")


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A directory with the shell file and its locks, as after a clone, and a PATH with hardly anything."""
    for name in ("tidegate", "requirements.lock", "requirements-test.lock"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (tmp_path / "bin" / tool).symlink_to(found)
    return tmp_path


def run(house: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "TIDEGATE_"))}
    return subprocess.run(
        ["sh", house / "tidegate", *arguments],
        env=kept | {"PATH": str(house / "bin"), "HOME": str(house)} | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def python_named(house: Path, script: str) -> None:
    path = house / "bin" / "python3"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_without_python_it_says_which_is_needed(house: Path) -> None:
    refused = run(house, "up")

    assert refused.returncode == 2
    assert refused.stderr.endswith("Python 3.11 or newer is needed, and no python3 of that age is on the PATH.\n")


def test_an_old_python_is_none(house: Path) -> None:
    python_named(house, "exit 1")

    assert "Python 3.11 or newer is needed" in run(house, "up").stderr


def test_without_venv_and_pip_it_names_both_packages(house: Path) -> None:
    python_named(house, f'[ "$1" = "-m" ] && exit 1\nexec {sys.executable} "$@"')

    refused = run(house, "up")

    assert refused.returncode == 2
    assert "install python3-pip or python3-venv" in refused.stderr


def test_without_a_network_it_tries_twice_and_says_so(house: Path) -> None:
    python_named(house, f'exec {sys.executable} "$@"')

    refused = run(house, "up", PIP_INDEX_URL="http://127.0.0.1:9/simple", PIP_RETRIES="0")

    assert refused.returncode == 2
    assert "trying once more" in refused.stderr
    assert "is the package index reachable from here?" in refused.stderr


def test_an_unknown_command_is_answered_with_those_that_exist(house: Path) -> None:
    refused = run(house, "upp")

    assert refused.returncode == 2
    assert "there is no command upp" in refused.stderr
    assert "./tidegate up" in refused.stderr


def test_help_installs_nothing(house: Path) -> None:
    shown = run(house, "--help")

    assert (shown.returncode, shown.stderr) == (0, "")
    assert not (house / ".venv").exists()
