"""Which Python runs the fast tests on the newest Django, and what is said when there is none."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from scheduler_site import next_django, testing


def python(path: Path, version: str, *, exit_code: int = 0) -> str:
    """Write a program that answers like a Python of that version, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {shlex.quote(version)}\nexit {exit_code}\n")
    path.chmod(0o755)
    return str(path)


def here(tmp_path: Path) -> dict[str, str]:
    return {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path / "home")}


def test_the_newest_on_the_path_is_taken(tmp_path: Path) -> None:
    python(tmp_path / "bin/python3.12", "3 12 9")
    newest = python(tmp_path / "bin/python3.13", "3 13 1")

    assert next_django.find_python(here(tmp_path)) == newest


def test_a_plain_name_counts_by_what_it_answers(tmp_path: Path) -> None:
    plain = python(tmp_path / "bin/python3", "3 15 0")

    assert next_django.find_python(here(tmp_path)) == plain


def test_a_shim_without_its_python_is_passed_over(tmp_path: Path) -> None:
    python(tmp_path / "bin/python3.13", "pyenv: python3.13: command not found", exit_code=127)
    working = python(tmp_path / "home/.pyenv/versions/3.12.1/bin/python3", "3 12 1")

    assert next_django.find_python(here(tmp_path)) == working


def test_a_trial_release_is_passed_over(tmp_path: Path) -> None:
    python(tmp_path / "bin/python3.14", "3 14 0", exit_code=1)

    assert next_django.find_python(here(tmp_path)) is None


def test_one_that_is_too_old_is_none(tmp_path: Path) -> None:
    python(tmp_path / "bin/python3", "3 11 7")

    assert next_django.find_python(here(tmp_path)) is None


def test_one_that_is_named_comes_first(tmp_path: Path) -> None:
    python(tmp_path / "bin/python3.13", "3 13 1")
    named = python(tmp_path / "elsewhere/python", "3 12 0")

    assert next_django.find_python({**here(tmp_path), next_django.VARIABLE: named}) == named


@pytest.mark.parametrize("version", ["3 11 9", ""])
def test_one_that_is_named_and_will_not_do_is_an_error(tmp_path: Path, version: str) -> None:
    named = python(tmp_path / "elsewhere/python", version)

    with pytest.raises(ValueError, match=r"TIDEGATE_NEXT_PYTHON is .*/elsewhere/python, which is no Python 3\.12"):
        next_django.find_python({**here(tmp_path), next_django.VARIABLE: named})


def test_this_very_python_answers() -> None:
    assert next_django._version(sys.executable) == tuple(sys.version_info[:3])


def test_packages_that_cannot_be_had_say_so(tmp_path: Path) -> None:
    (tmp_path / next_django.LOCK).write_text("# nothing\n")
    broken = python(tmp_path / "bin/python3.12", "Permission denied", exit_code=1)

    with pytest.raises(next_django.NoPackages, match=r"could not make .*next: Permission denied"):
        next_django.environment_for(broken, tmp_path)


def test_what_is_installed_is_kept_until_lock_or_python_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / next_django.LOCK
    lock.write_text("# nothing\n")
    made = []

    def run(command: list[str]) -> str:
        made.append(command)
        python(tmp_path / ".venv-next/bin/python", "3 12 9")
        return ""

    monkeypatch.setattr(next_django, "_run", run)
    base = python(tmp_path / "bin/python3.12", "3 12 9")

    inside = next_django.environment_for(base, tmp_path)
    assert (inside, len(made)) == (str(tmp_path / ".venv-next/bin/python"), 2)
    assert made[1][-2:] == ["--requirement", str(lock)]
    assert next_django.environment_for(base, tmp_path) == inside
    assert len(made) == 2

    lock.write_text("# something else\n")
    next_django.environment_for(base, tmp_path)
    python(tmp_path / "bin/python3.12", "3 12 10")
    next_django.environment_for(base, tmp_path)
    assert len(made) == 6


def test_without_one_a_line_says_so_and_nothing_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(next_django, "find_python", lambda environment: None)
    missing: list[str] = []

    assert testing._on_the_next_django(missing, False) == []
    assert missing == []
    assert capsys.readouterr().out == ("== newest Django: no Python 3.12 or newer was found here, so it is left out\n")


def test_both_fast_tiers_run_on_the_one_that_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(next_django, "find_python", lambda environment: "/opt/python3.13")
    monkeypatch.setattr(next_django, "environment_for", lambda python, repository: "/x/.venv-next/bin/python")
    ran: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(testing, "_run", lambda name, command: ran.append((name, list(command))) or [name])

    assert testing._on_the_next_django([], True) == [
        "unit tests on the newest Python",
        "integration tests on the newest Django",
    ]
    assert {command[0] for _, command in ran} == {"/x/.venv-next/bin/python"}
    assert [command[-1] for _, command in ran] == ["tests/unit", "tests/integration"]
