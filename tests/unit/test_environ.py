from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from scheduler_site import environ, service


def test_postgres_over_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB", "postgresql://ada:p%40ss@db.example:5433/gate")

    found = environ.database("DB", Path("/unused"))

    assert {key: found[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")} == {
        "NAME": "gate",
        "USER": "ada",
        "PASSWORD": "p@ss",
        "HOST": "db.example",
        "PORT": "5433",
    }
    assert "idle_in_transaction_session_timeout=5s" in found["OPTIONS"]["options"]


def test_postgres_over_a_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB", "postgresql:///gate?host=/run/pg")

    found = environ.database("DB", Path("/unused"))

    assert (found["HOST"], found["NAME"], found["USER"]) == ("/run/pg", "gate", "")


def test_a_word_out_of_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environ.one_of("WAY", ("auto", "off")) == "auto"
    monkeypatch.setenv("WAY", "off")
    assert environ.one_of("WAY", ("auto", "off")) == "off"
    monkeypatch.setenv("WAY", "of")
    with pytest.raises(ImproperlyConfigured, match="WAY is 'of'; it must be one of auto, off"):
        environ.one_of("WAY", ("auto", "off"))


def test_sqlite_waits_for_its_lock_instead_of_failing(tmp_path: Path) -> None:
    found = environ.database("UNSET_VARIABLE", tmp_path / "x.sqlite3")

    assert found["OPTIONS"]["transaction_mode"] == "IMMEDIATE"
    assert "journal_mode=WAL" in found["OPTIONS"]["init_command"]
    assert found["CONN_MAX_AGE"] is None


def test_secret_key_is_made_once_and_for_us_alone(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"

    first = environ.secret_key("UNSET_VARIABLE", path)

    assert environ.secret_key("UNSET_VARIABLE", path) == first
    assert len(first) >= 64
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret.key"]


@pytest.mark.parametrize("target, zone", [("Europe/Berlin", "Europe/Berlin"), ("Mars/Olympus", "UTC")])
def test_time_zone_is_the_machines_when_it_can_be_read(target: str, zone: str, tmp_path: Path) -> None:
    link = tmp_path / "localtime"
    link.symlink_to(f"/usr/share/zoneinfo/{target}")
    known = Path(f"/usr/share/zoneinfo/{zone}").is_file()

    assert environ.time_zone({}, link) == (zone if known else "UTC")


def test_pages_on_loopback_answer_to_loopback_names_alone() -> None:
    assert environ.host_names("127.0.0.1") == ["localhost", "127.0.0.1", "[::1]"]


def test_pages_on_all_addresses_answer_to_this_machines_names() -> None:
    names = environ.host_names("0.0.0.0")

    assert "127.0.0.1" in names
    assert "*" not in names


@pytest.mark.parametrize("name", ["a/b", "..", "a b", "x" * 64, "<b>", "a\nb", "é"])
def test_a_node_is_called_what_can_name_a_file_and_a_queue(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("NODE_NAME", name)
    with pytest.raises(ImproperlyConfigured, match="set NODE_NAME to"):
        environ.node_name("NODE_NAME", "atlas")
    monkeypatch.delenv("NODE_NAME")
    assert environ.node_name("NODE_NAME", "gpu-1.example.org") == "gpu-1.example.org"


@pytest.mark.parametrize("name, value", [("TIDEGATE_DEBUG", "maybe"), ("TIDEGATE_NODE", "a/b"), ("TIDEGATE_RUNS", "x")])
def test_a_wrong_variable_ends_the_start_with_one_sentence(name: str, value: str, tmp_path: Path) -> None:
    environment = {**os.environ, "TIDEGATE_DATA": str(tmp_path), name: value}
    said = subprocess.run(
        [sys.executable, "-m", "scheduler_site.errands", "farewell"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert said.returncode == 1
    assert len(said.stderr.strip().splitlines()) == 1
    assert name in said.stderr


def test_no_address_is_not_every_address() -> None:
    with pytest.raises(service.Refusal, match=r"say 0\.0\.0\.0"):
        service._listen("", 0)
