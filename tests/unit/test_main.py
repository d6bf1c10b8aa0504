"""`./tidegate manage`: which data directory it speaks of, and what it says where there is nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scheduler_site import __main__ as program


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Collect what would have been handed to Django, with the data directory that it would have seen."""
    calls: list[tuple[str, ...]] = []

    def collect(*arguments: str) -> int:
        calls.append((os.environ.get("TIDEGATE_DATA", ""), *arguments))
        return 0

    monkeypatch.setattr(program, "_pass_on", collect)
    for name in ("TIDEGATE_DATA", "TIDEGATE_DATABASE_URL"):
        monkeypatch.setenv(name, "")  # so that it is put back after the test, whatever the program sets
    return calls


def test_a_command_of_a_service_is_refused_where_none_kept_anything(
    passed: list[tuple[str, ...]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(["manage", "--data", str(tmp_path), "login_link", "admin"]) == 2

    said = capsys.readouterr().err
    assert str(tmp_path) in said
    assert "--data" in said
    assert passed == []
    assert list(tmp_path.iterdir()) == []


def test_data_may_stand_before_the_command(passed: list[tuple[str, ...]], tmp_path: Path) -> None:
    (tmp_path / "tidegate.sqlite3").touch()

    assert program.main(["manage", "--data", str(tmp_path), "login_link", "ada", "--address", "http://a"]) == 0

    assert passed == [(str(tmp_path), "manage.py", "login_link", "ada", "--address", "http://a")]


def test_another_database_and_commands_that_make_one_pass(
    passed: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_DATA", str(tmp_path))
    program.main(["manage", "migrate", "--database", "default"])
    program.main(["manage", "login_link", "--help"])
    monkeypatch.setenv("TIDEGATE_DATABASE_URL", "postgresql:///tidegate")
    program.main(["manage", "knob"])

    assert [call[1:] for call in passed] == [
        ("manage.py", "migrate", "--database", "default"),
        ("manage.py", "login_link", "--help"),
        ("manage.py", "knob"),
    ]
