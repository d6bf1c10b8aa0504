from __future__ import annotations

import signal
from typing import Any

import pytest

from placement.runner import stop
from placement.runner.identity import Identity, Stat
from placement.runner.stop import Ending, StopRequest, parse_stop


def a_stat(pid: int, pgid: int) -> Stat:
    return Stat(pid=pid, name="x", state="S", ppid=1, pgid=pgid, sid=1, start_ticks=5)


NOBODY = Identity(2**22 + 5, 1, "no boot")


@pytest.mark.parametrize(
    "fields, request_",
    [
        ({"reason": "watchdog", "at": 5, "grace_s": 2}, StopRequest("watchdog", 5.0, 2.0)),
        ({"reason": "cancel", "at": 5.5, "by": "ada"}, StopRequest("cancel", 5.5, None)),
        ({}, StopRequest("cancel", None, None)),
        ({"reason": 5, "grace_s": "soon"}, StopRequest("cancel", None, None)),
        ({"reason": "cancel", "grace_s": -3}, StopRequest("cancel", None, 0.0)),
        ({"at": 10**400, "grace_s": 10**400}, StopRequest("cancel", None, None)),  # no float holds it
        ({"at": float("nan"), "grace_s": float("inf")}, StopRequest("cancel", None, None)),
        ({"grace_s": 1e300}, StopRequest("cancel", None, None)),  # no clock has it
    ],
)
def test_a_request_is_read_leniently(fields: dict[str, Any], request_: StopRequest) -> None:
    assert parse_stop(fields) == request_


@pytest.fixture
def kills(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Two children that never die, and a list of who was killed."""
    killed: list[int] = []
    monkeypatch.setattr(stop, "children_of", lambda pid: [501, 502])
    monkeypatch.setattr(stop, "walk", lambda pid: [])
    monkeypatch.setattr(stop.os, "kill", lambda pid, number: killed.append(pid))
    return killed


def test_nothing_is_killed_before_the_grace_is_over(kills: list[int]) -> None:
    ending = Ending(NOBODY)
    assert ending.step(0.0) is None
    ending.begin(0.0, 10.0)
    assert ending.step(0.0) == 10.0
    assert ending.step(9.0) == 1.0
    assert kills == []
    assert ending.killed is False
    ending.step(10.0)
    assert kills == [501, 502]
    assert ending.killed is True


def test_a_second_request_only_shortens_the_grace(kills: list[int]) -> None:
    ending = Ending(NOBODY)
    ending.begin(0.0, 10.0)
    ending.begin(1.0, 100.0)
    assert ending.step(2.0) == 8.0
    ending.begin(2.0, 0.0)
    ending.step(2.0)
    assert kills == [501, 502]


def test_children_that_do_not_die_are_struck_ever_less_often(kills: list[int]) -> None:
    ending = Ending(NOBODY)
    ending.begin(0.0, 0.0)
    pauses = [ending.step(float(second)) for second in range(12)]
    assert pauses[0] == 0.005
    assert pauses == sorted(pauses, key=lambda pause: pause or 0.0)
    assert pauses[-1] == 0.5


def test_children_that_may_not_be_killed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(pid: int, number: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(stop, "children_of", lambda pid: [501])
    monkeypatch.setattr(stop.os, "kill", kill)
    ending = Ending(NOBODY)
    ending.begin(0.0, 0.0)
    ending.step(0.0)
    assert (ending.stubborn, ending.killed) == ([501], False)


def test_an_orphan_on_the_move_is_found_and_each_process_is_signalled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    walks = iter([[a_stat(501, 500), a_stat(502, 502)], [a_stat(502, 502), a_stat(503, 503)], [], []])
    monkeypatch.setattr(stop, "walk", lambda pid: next(walks))
    monkeypatch.setattr(stop, "signal_group", lambda pgid, leader, number: True)
    monkeypatch.setattr(stop, "signal_member", lambda member, number: sent.append((member.pid, number)))
    Ending(Identity(500, 1, "boot")).begin(0.0, 10.0)
    assert sent == [(502, signal.SIGTERM), (503, signal.SIGTERM)]


def test_without_a_grace_all_stand_still_before_the_first_kill(
    kills: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = [[a_stat(501, 501)], [a_stat(501, 501), a_stat(502, 502)], [a_stat(501, 501), a_stat(502, 502)]]
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(stop, "walk", lambda pid: looks.pop(0))
    monkeypatch.setattr(stop, "signal_member", lambda member, number: sent.append((member.pid, number)))
    ending = Ending(NOBODY)
    ending.begin(0.0, 0.0)
    assert sent == [(501, signal.SIGSTOP), (502, signal.SIGSTOP)]  # each once, until a look found no new one
    assert looks == []
    assert kills == []
    ending.step(0.0)
    assert kills == [501, 502]


def test_a_storm_that_outruns_the_freeze_is_killed_all_the_same(
    kills: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = iter(range(1000, 10_000))
    monkeypatch.setattr(stop, "walk", lambda pid: [a_stat(next(pids), 1)])
    monkeypatch.setattr(stop, "signal_member", lambda member, number: True)
    ending = Ending(NOBODY)
    ending.begin(0.0, 0.0)
    assert next(pids) <= 1010
    ending.step(0.0)
    assert kills == [501, 502]
