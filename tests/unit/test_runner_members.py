"""Records that name what cannot be a job's: nobody is taken for a member, and nobody is signalled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placement.runner.identity import Identity, identify, read_boot_id
from placement.runner.members import kill_members, members
from placement.runner.record import Started, read_started
from placement.runner.status import Phase, look
from placement.runner.stop_request import ALREADY_GONE, request_stop


@pytest.fixture
def other() -> Iterator[Identity]:
    """A process in a session of its own that is nobody's job."""
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)
    found = identify(process.pid)
    assert found is not None
    yield found
    assert process.poll() is None, "somebody ended a stranger"
    process.communicate()  # its input ends, and so does it


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Signals of every kind; none is sent."""
    calls: list[object] = []
    monkeypatch.setattr(os, "killpg", lambda *to: calls.append(("killpg", *to)))
    monkeypatch.setattr(os, "kill", lambda *to: calls.append(("kill", *to)))
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *to: calls.append(("pidfd", *to)))
    return calls


def me(pid: int) -> dict[str, Any]:
    found = identify(pid)
    assert found is not None
    return {"pid": pid, "start_ticks": found.start_ticks}


def a_record(tmp_path: Path, child: dict[str, Any]) -> Path:
    """Return a run directory whose runner is gone and whose record names this child."""
    (tmp_path / "control").mkdir()
    gone = {"pid": 2**22 - 3, "start_ticks": 1}
    fields = {"version": 1, "boot_id": read_boot_id(), "runner": gone, "child": child, "at": 1.0, "boottime": 1.0}
    (tmp_path / "control" / "started.json").write_text(json.dumps(fields))
    return tmp_path


@pytest.mark.parametrize("pid", [None, 0, 1, -1])
def test_a_number_that_is_no_process_of_ours_names_nobody(pid: int | None, tmp_path: Path, sent: list[object]) -> None:
    run = a_record(tmp_path, me(1) | {"pid": pid})
    assert read_started(run) is None
    assert look(run).phase is Phase.LOST
    assert request_stop(run, "cancel") == ALREADY_GONE
    assert sent == []


@pytest.mark.parametrize("whose", ["this process", "its group", "its session", "its parent reused"])
def test_the_service_is_no_member_of_a_job(whose: str, tmp_path: Path, sent: list[object]) -> None:
    pids = {"this process": os.getpid(), "its group": os.getpgrp(), "its session": os.getsid(0)}
    child = me(pids.get(whose, os.getppid())) if identify(pids.get(whose, os.getppid())) else {"pid": 0}
    if whose == "its parent reused":
        child["start_ticks"] = 1
    run = a_record(tmp_path, child)
    assert look(run).phase is Phase.LOST
    assert request_stop(run, "cancel") == ALREADY_GONE
    assert sent == []


def test_a_group_and_a_session_whose_numbers_a_stranger_has_now_lead_to_nobody(
    other: Identity, tmp_path: Path, sent: list[object]
) -> None:
    old = other._replace(start_ticks=other.start_ticks - 1)
    started = Started(7, 1, runner=old, child=old, at=1.0, boottime=1.0)
    assert members(started) == ()
    assert kill_members([old], signal.SIGTERM) == 0
    run = a_record(tmp_path, {"pid": old.pid, "start_ticks": old.start_ticks})
    assert request_stop(run, "cancel") == ALREADY_GONE
    assert sent == []


def test_those_that_are_the_recorded_ones_get_theirs(other: Identity, tmp_path: Path, sent: list[object]) -> None:
    run = a_record(tmp_path, {"pid": other.pid, "start_ticks": other.start_ticks})
    assert look(run).phase is Phase.UNSUPERVISED
    assert request_stop(run, "cancel") == "signalled"
    assert [call[0] for call in sent if isinstance(call, tuple)] == ["pidfd"], "one by one, never a group"
