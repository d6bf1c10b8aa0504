"""The supervisor with small programs instead of the service's own."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler_site import children, supervisor
from scheduler_site.children import Child, Program
from scheduler_site.supervisor import CycleWatch, NotReady, Supervisor
from tests.wait import until


def program(tmp_path: Path, name: str, code: str) -> Program:
    mark = tmp_path / f"{name}.ready"
    return Program(
        name=name,
        argv=(sys.executable, "-S", "-c", f"mark = {str(mark)!r}\n{code}"),
        environment=os.environ,
        log=tmp_path / f"{name}.log",
        ready=mark.exists,
        marks=(mark,),
    )


LIVES = "import time; open(mark, 'w').close(); time.sleep(60)"
DEAF = "import signal, time; signal.signal(15, signal.SIG_IGN); open(mark, 'w').close(); time.sleep(60)"


@pytest.fixture
def signals_restored() -> Iterator[None]:
    """The supervisor takes signals for itself; give them back to the test run."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
    before = [signal.getsignal(number) for number in numbers]
    wakeup = signal.set_wakeup_fd(-1)
    yield
    signal.set_wakeup_fd(wakeup)
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def test_restarts_at_once_and_then_ever_later(tmp_path: Path) -> None:
    child = Child(program(tmp_path, "one", "raise SystemExit(4)"))
    waits = []
    for _ in range(3):
        child.start(now=100.0)
        status = until(lambda: child.reap(now=100.0), 20, "the end of the program")
        assert status == 4
        assert child.due_at is not None
        waits.append(child.due_at - 100.0)

    assert waits == list(children.BACK_OFF[:3])


def test_a_steady_life_starts_the_count_anew(tmp_path: Path) -> None:
    child = Child(program(tmp_path, "one", "raise SystemExit(4)"))
    for begun, ended in ((0.0, 0.0), (0.0, 0.0), (0.0, children.STEADY_AFTER)):
        child.start(now=begun)
        until(lambda ended=ended: child.reap(now=ended), 20, "the end of the program")

    assert child.due_at == children.STEADY_AFTER


def test_what_a_dead_leader_left_in_its_group_is_killed(tmp_path: Path) -> None:
    code = (
        "import os, time\nif os.fork() == 0:\n open(mark, 'w').write(str(os.getpid())); time.sleep(60)\ntime.sleep(60)"
    )
    child = Child(program(tmp_path, "one", code))
    child.start(now=0.0)
    mark = tmp_path / "one.ready"
    below = int(until(lambda: mark.exists() and mark.read_text(), 20, "the second process"))
    assert child.pid is not None

    os.kill(child.pid, signal.SIGKILL)

    until(lambda: child.reap(now=0.0), 20, "the end of the leader")
    until(lambda: not _lives(below), 20, "the end of the process below it")


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_long_logs_are_put_aside_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "LOG_LIMIT", 10)
    child = Child(program(tmp_path, "one", "print('new')"))
    child.program.log.write_text("an old log that is long")

    child.start(now=0.0)
    until(lambda: child.reap(now=0.0) is not None, 20, "the end of the program")

    assert child.program.log.read_text() == "new\n"
    assert (tmp_path / "one.log.1").read_text() == "an old log that is long"


@pytest.mark.usefixtures("signals_restored")
def test_stops_everything_even_what_does_not_listen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "STOP_WITHIN", (0.3,))
    told: list[dict[str, dict[str, int | None]]] = []
    keeper = Supervisor(
        [[program(tmp_path, "first", LIVES)], [program(tmp_path, "second", DEAF)]], on_change=told.append
    )
    keeper.listen()
    keeper.start()
    pids = [child["pid"] for child in told[-1].values()]
    assert all(pid and _lives(pid) for pid in pids)

    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
    keeper.run()
    keeper.stop()

    assert not any(_lives(pid) for pid in pids if pid)
    assert told[-1] == {"first": {"pid": None, "restarts": 0}, "second": {"pid": None, "restarts": 0}}


@pytest.mark.usefixtures("signals_restored")
def test_a_program_that_keeps_failing_is_named_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "BACK_OFF", (0.0,))
    keeper = Supervisor([[program(tmp_path, "web", "raise SystemExit('no such table')")]])
    keeper.listen()

    with pytest.raises(NotReady, match=r"web did not come up.*no such table"):
        keeper.start()
    keeper.stop()


def test_the_last_mark_says_whether_a_cycle_is_open() -> None:
    read_end, write_end = os.pipe2(os.O_NONBLOCK)
    watch = CycleWatch(read_end)
    try:
        for marks, since in ((b"BEB", 5.0), (b"", 5.0), (b"E", None), (b"BE", None), (b"B", 5.0)):
            os.write(write_end, marks)
            watch.read(now=5.0)
            assert watch.inside_since == since
        assert not watch.is_stuck(now=5.0 + supervisor.CYCLE_LIMIT)
        assert watch.is_stuck(now=5.1 + supervisor.CYCLE_LIMIT)
    finally:
        os.close(read_end)
        os.close(write_end)
