from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from placement.runner.identity import Identity, identify
from placement.runner.signals import signal_group, signal_member


@pytest.fixture
def held() -> Iterator[Identity]:
    """A child of ours in its own group that waits for the end of a pipe."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.setpgid(pid, pid)
    identity = identify(pid)
    assert identity is not None
    yield identity
    os.close(reading)
    os.close(writing)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass  # the test has reaped it


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Group signals that would have been sent; none is."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: sent.append((group, number)))
    return sent


@pytest.mark.parametrize("pgid", [None, 0, 1, -1, True, "12", 2.0], ids=repr)
def test_a_number_that_is_no_group_of_ours_sends_nothing(
    pgid: object, held: Identity, calls: list[tuple[int, int]]
) -> None:
    assert signal_group(pgid, held, signal.SIGTERM) is False
    assert calls == []


def test_our_own_group_is_refused(calls: list[tuple[int, int]]) -> None:
    me = identify(os.getpgrp())
    assert me is None or signal_group(os.getpgrp(), me, signal.SIGTERM) is False
    assert calls == []


def test_a_group_led_by_a_stranger_is_refused(held: Identity, calls: list[tuple[int, int]]) -> None:
    stranger = held._replace(start_ticks=held.start_ticks + 700)
    assert signal_group(held.pid, stranger, signal.SIGTERM) is False
    assert signal_group(held.pid, held._replace(boot_id="earlier"), signal.SIGTERM) is False
    assert signal_group(held.pid + 1, held, signal.SIGTERM) is False
    assert calls == []


def test_a_child_that_still_stands_in_our_group_is_refused(calls: list[tuple[int, int]]) -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    child = identify(pid)
    assert child is not None
    assert signal_group(pid, child, signal.SIGTERM) is False
    assert calls == []
    os.close(reading)
    os.close(writing)
    os.waitpid(pid, 0)


def test_the_recorded_group_gets_its_signal(held: Identity) -> None:
    assert signal_group(held.pid, held, signal.SIGTERM) is True
    assert os.waitstatus_to_exitcode(os.waitpid(held.pid, 0)[1]) == -signal.SIGTERM


def test_a_member_gets_its_signal_and_a_stranger_does_not(held: Identity) -> None:
    assert signal_member(held._replace(start_ticks=held.start_ticks + 1), signal.SIGKILL) is False
    assert signal_member(held, signal.SIGTERM) is True
    assert os.waitstatus_to_exitcode(os.waitpid(held.pid, 0)[1]) == -signal.SIGTERM
    assert signal_member(held, signal.SIGTERM) is False


@pytest.mark.parametrize("pid", [0, 1, -1])
def test_a_member_with_an_impossible_pid_gets_nothing(
    pid: int, held: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *a: pytest.fail("a signal was sent"))
    assert signal_member(held._replace(pid=pid), signal.SIGTERM) is False


def test_nobody_signals_itself() -> None:
    me = identify(os.getpid())
    assert me is not None
    assert signal_member(me, signal.SIGKILL) is False
