from __future__ import annotations

import os
import threading

import pytest

from calibration.probes.guard import Guarded
from tests.wait import until


def test_a_good_reading_comes_at_once_and_is_not_old() -> None:
    assert Guarded(lambda: 7, clock=lambda: 100.0).look(20.0) == (7, 0.0, False)


def test_a_hanging_call_gives_the_last_value_and_its_age_and_is_never_doubled() -> None:
    now, release, calls = [100.0], threading.Event(), []

    def read() -> int:
        calls.append(threading.get_ident())
        if len(calls) == 2:
            release.wait(30)
        return len(calls)

    guarded = Guarded(read, clock=lambda: now[0])
    assert guarded.look(2.0) == (1, 0.0, False)

    assert guarded.look(0.001) == (1, 0.0, True)
    until(lambda: len(calls) == 2, 20, "the second call to hang")
    for second in range(1, 41):
        now[0] = 100.0 + second
        assert guarded.look(0.001) == (1, float(second), True)
    assert len(calls) == 2

    release.set()
    until(lambda: guarded.look(0.5)[0] == 3, 20, "a fresh reading after the hang")
    assert not guarded.look(2.0)[2]
    assert len(set(calls)) == 1  # the same thread all along


def test_what_a_hung_call_brings_back_is_as_old_as_its_beginning() -> None:
    now, release = [0.0], threading.Event()

    def read() -> str:
        release.wait(30)
        return "late"

    guarded = Guarded(read, clock=lambda: now[0])
    assert guarded.look(0.001) == (None, None, True)
    now[0] = 40.0
    release.set()
    answer = until(lambda: (seen := guarded.look(0.0))[0] and seen, 20, "the call to come back")
    assert answer[:2] == ("late", 40.0)


def test_a_call_that_raises_keeps_the_last_value_and_says_the_error() -> None:
    answers = iter([1])
    guarded = Guarded(lambda: next(answers))
    guarded.look(2.0)

    value, _, stuck = guarded.look(2.0)

    assert (value, stuck) == (1, False)
    assert guarded.error.startswith("StopIteration")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # forking beside a thread is the point
def test_after_a_fork_the_child_has_a_thread_of_its_own() -> None:
    guarded = Guarded(os.getpid)
    assert guarded.look(2.0)[0] == os.getpid()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        answer = guarded.look(5.0)[0]
        os.write(write_end, b"own" if answer == os.getpid() else b"parent's")
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        assert pipe.read() == b"own"
    os.waitpid(child, 0)


@pytest.mark.parametrize("timeout", [0.0, 0.05])
def test_a_look_never_waits_longer_than_it_was_told(timeout: float) -> None:
    release = threading.Event()
    guarded = Guarded(lambda: release.wait(30))
    assert guarded.look(timeout)[2]
    release.set()
