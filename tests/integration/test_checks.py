from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks

from placement import checks
from placement.services import premises

CLOSED = 0o700


@pytest.fixture
def data(settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setitem(settings.DATABASES["default"], "NAME", tmp_path / "tidegate.sqlite3")
    tmp_path.chmod(CLOSED)
    settings.DATA, settings.RUNS = tmp_path, tmp_path / "runs"
    settings.BROKER_IS_FILES = True
    return tmp_path


def ids() -> list[str]:
    return [message.id or "" for message in run_checks(tags=["tidegate"])]


@pytest.mark.usefixtures("data")
def test_a_good_place_gives_no_message() -> None:
    assert ids() == []


def test_a_run_directory_that_cannot_be_made_is_an_error_with_a_hint(settings: Any, data: Path) -> None:
    (data / "file").write_text("")
    settings.RUNS = data / "file" / "runs"

    (message,) = run_checks(tags=["tidegate"])

    assert message.id == "tidegate.E001"
    assert "is not a directory" in message.msg
    assert "TIDEGATE_RUNS" in (message.hint or "")


def test_a_full_or_read_only_disk_is_seen_by_writing(monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(premises.os, "open", refuse)

    assert [m.id for m in checks.run_directories()] == ["tidegate.E001"]
    assert "No space left" in checks.run_directories()[0].msg
    assert list(data.iterdir()) == []


@pytest.mark.usefixtures("data")
def test_a_database_on_a_network_mount_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(premises, "network_kind", lambda path: "nfs4")

    (message,) = run_checks(tags=["tidegate"])

    assert message.id == "tidegate.E002"
    assert "(nfs4)" in message.msg


@pytest.mark.usefixtures("data")
def test_a_database_server_has_no_file_to_look_at(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django.db.backends.postgresql")

    assert premises.database_file() is None
    assert ids() == []


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (0o700, []),
        (0o711, []),
        (0o755, ["tidegate.E003"]),
        (0o777, ["tidegate.E003"]),
    ],
)
def test_others_may_pass_through_the_data_and_no_more(data: Path, mode: int, expected: list[str]) -> None:
    data.chmod(mode)

    assert ids() == expected


@pytest.mark.parametrize("name", ["environment.key", "secret.key"])
@pytest.mark.parametrize(("mode", "expected"), [(0o600, []), (0o640, ["tidegate.E004"]), (0o604, ["tidegate.E004"])])
def test_a_key_is_for_the_service_alone(data: Path, name: str, mode: int, expected: list[str]) -> None:
    (data / name).write_text("key")
    (data / name).chmod(mode)

    assert ids() == expected


def test_a_database_that_others_can_reach_must_be_closed(data: Path) -> None:
    database = data / "tidegate.sqlite3"
    database.write_text("")
    database.chmod(0o640)

    assert ids() == []
    data.chmod(0o711)
    assert ids() == ["tidegate.E004"]


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (((7, 0, 15), ""), []),
        (((6, 2, 0), ""), []),
        (((6, 0, 16), ""), ["tidegate.E005"]),
        ((None, "Connection refused"), ["tidegate.W001"]),
    ],
)
def test_the_redis_in_use_has_to_answer_and_be_new_enough(
    settings: Any, monkeypatch: pytest.MonkeyPatch, answer: Any, expected: list[str]
) -> None:
    settings.BROKER_IS_FILES = False
    monkeypatch.setattr(premises, "redis_in_use", lambda: answer)

    assert ids() == expected


@pytest.mark.usefixtures("data")
def test_an_old_redis_on_the_path_is_a_warning_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(premises, "redis_on_path", lambda: ("/usr/bin/redis-server", (6, 0, 16)))

    (message,) = run_checks(tags=["tidegate"])

    assert message.id == "tidegate.W002"
    assert "6.0.16" in message.msg


def test_a_redis_that_is_not_there_is_said_in_words(settings: Any) -> None:
    settings.CELERY_BROKER_URL = "redis+socket:///nonexistent/redis.sock?virtual_host=0"

    version, why = premises.redis_in_use()

    assert version is None
    assert "nonexistent" in why


def test_the_version_of_a_redis_server_is_read_from_its_own_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    binary = tmp_path / "redis-server"
    binary.write_text("#!/bin/sh\necho 'Redis server v=6.0.16 sha=00000000:0 malloc=jemalloc bits=64'\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    assert premises.redis_on_path() == (str(binary), (6, 0, 16))
