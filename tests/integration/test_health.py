"""Health is work done, not a process that exists."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

import manage
from calibration import clock
from placement.models import Node
from placement.services import premises

pytestmark = pytest.mark.django_db


def node(**ages: float) -> None:
    now = clock.now()
    fields = {f"{name}_clock": now - age for name, age in ages.items()}
    Node.objects.create(name="testnode", epoch=clock.epoch(), **fields)


def test_a_node_that_looks_and_takes_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    node(tick=0.5, start_sent=100, start_taken=99)
    call_command("health")
    assert "testnode is well" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ages", "words"),
    [
        ({}, "finished no look since it booted"),
        ({"tick": 400}, "finished no look for 400 s"),
        ({"tick": 0.5, "start_sent": 30}, "taken no message for 30 s"),
    ],
)
def test_a_node_that_does_not_is_named_with_what_to_do(ages: dict[str, float], words: str) -> None:
    node(**ages)
    with pytest.raises(CommandError, match=f"{words}.*jobs go on"):
        call_command("health")


def test_an_unknown_node_is_named() -> None:
    with pytest.raises(CommandError, match="no node testnode"):
        call_command("health")


def test_on_a_full_disk_it_is_room_that_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    node(tick=400)
    monkeypatch.setattr(premises.shutil, "disk_usage", lambda folder: SimpleNamespace(free=1 << 20))
    with pytest.raises(CommandError, match=r"no look for 400 s: the disk of .* is full \(1 MiB left\); make room"):
        call_command("health")


def test_a_database_that_cannot_be_used_is_one_sentence_from_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(argv: list[str]) -> None:
        raise OperationalError("disk I/O error")

    monkeypatch.setattr("django.core.management.execute_from_command_line", fails)
    monkeypatch.setattr(premises.shutil, "disk_usage", lambda folder: SimpleNamespace(free=0))
    with pytest.raises(SystemExit, match=r"cannot be used now \(disk I/O error\): the disk of .* is full .* try again"):
        manage.main()
