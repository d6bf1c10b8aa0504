"""Root's side of scopes for an account: who may ask, for what, and what is handed over."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from placement.runner import scopes
from placement.runner.scopes import Machine, Refused, answer, ask, serve, start_scope

MIB = 1 << 20
UNIT = "tidegate-0a1b2c3d-7-1.scope"
PEER, CHILD, OTHER, ROOTS, SETUID = 500, 501, 600, 502, 503
UID = os.getuid() or 1000


class Made:
    """A machine on which systemd does what it is asked; ``asked`` are its commands."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked, self.says = folder, list[list[str]](), ""
        self.machine = Machine(str(folder / "proc"), str(folder / "cgroup"), self.run)
        self.process(PEER, 1, UID)
        self.process(CHILD, PEER, UID)
        self.process(OTHER, 1, UID)
        self.process(ROOTS, PEER, 0)
        self.process(SETUID, PEER, UID, 0)

    def process(self, pid: int, parent: int, uid: int, effective: int | None = None) -> None:
        folder = self.folder / f"proc/{pid}"
        folder.mkdir(parents=True)
        four = f"{uid}\t{uid if effective is None else effective}\t{uid}\t{uid}"
        (folder / "status").write_text(f"Name:\tx: y\nPid:\t{pid}\nPPid:\t{parent}\nUid:\t{four}\n")
        (folder / "cgroup").write_text("0::/system.slice/x.service\n")

    def run(self, command: Sequence[str]) -> str:
        self.asked.append(list(command))
        if not self.says and "StartTransientUnit" in command:
            top = self.folder / f"cgroup/tidegate.slice/{UNIT}"
            top.mkdir(parents=True)
            for name in ("cgroup.procs", "cgroup.threads", "cgroup.subtree_control", "memory.max"):
                (top / name).touch()
            for pid in (PEER, CHILD):
                (self.folder / f"proc/{pid}/cgroup").write_text(f"4:memory:/\n0::/tidegate.slice/{UNIT}\n")
        return self.says


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def test_a_scope_is_made_around_its_own_processes_and_its_inside_handed_over(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[str, int]] = []
    monkeypatch.setattr(scopes.os, "chown", lambda path, uid, gid, **_: given.append((os.path.basename(path), uid)))
    assert answer({"unit": UNIT, "pids": [PEER, CHILD]}, PEER, UID, made.machine) == ""
    assert made.asked == [start_scope(UNIT, "system", [PEER, CHILD])]
    assert [name for name, _ in given] == ["", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"]
    assert {uid for _, uid in given} == {UID}


def test_what_systemd_refuses_is_said_and_nothing_is_handed_over(made: Made) -> None:
    made.says = "Unit tidegate-x.scope already exists."
    assert answer({"unit": UNIT, "pids": [PEER]}, PEER, UID, made.machine) == made.says


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        pytest.param({"unit": UNIT, "pids": [OTHER]}, "not a child", id="another process of the account"),
        pytest.param({"unit": UNIT, "pids": [PEER, ROOTS]}, "is not uid", id="a child that is root's"),
        pytest.param({"unit": UNIT, "pids": [SETUID]}, "is not uid", id="a child that became root"),
        pytest.param({"unit": UNIT, "pids": [1]}, "no process", id="init"),
        pytest.param({"unit": UNIT, "pids": [True]}, "no process", id="no number"),
        pytest.param({"unit": UNIT, "pids": [77]}, "not a child", id="one that is gone"),
        pytest.param({"unit": UNIT, "pids": [PEER, PEER]}, "one process or two", id="twice the same"),
        pytest.param({"unit": UNIT, "pids": []}, "one process or two", id="nobody"),
        pytest.param({"unit": "ssh.service", "pids": [PEER]}, "scopes named", id="another unit"),
        pytest.param({"unit": "tidegate-../x.scope", "pids": [PEER]}, "scopes named", id="a path"),
        pytest.param({"unit": UNIT, "pids": [PEER], "User": "root"}, "scopes named", id="more than is taken"),
        pytest.param({"reserve": 1 * MIB}, "leaves 1048576 bytes", id="a reserve that ends all jobs"),
        pytest.param({"reserve": True}, "leaves True", id="a reserve that is no number"),
        pytest.param([UNIT], "an object", id="no object"),
    ],
)
def test_nothing_else_is_done(made: Made, request_: Any, why: str) -> None:
    with pytest.raises(Refused, match=why):
        answer(request_, PEER, UID, made.machine)
    assert made.asked == []


def test_the_reserve_is_a_limit_of_the_slice_of_all_jobs(made: Made) -> None:
    assert answer({"reserve": 900 * MIB}, PEER, UID, made.machine) == ""
    assert made.asked[0][-3:] == ["--runtime", "tidegate.slice", f"MemoryMax={900 * MIB}"]


@pytest.fixture
def served(made: Made, tmp_path: Path) -> Any:
    """Return what asks a side that serves a uid, and returns its answer."""

    def once(request: Any, uid: int) -> str:
        path = str(tmp_path / f"s{len(os.listdir(tmp_path))}")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            thread = threading.Thread(target=serve, args=(listener, uid, made.machine))
            thread.start()
            said = ask(request, path)
            thread.join(60)
        return said

    return once


def test_the_kernel_says_who_asks(served: Callable[[Any, int], str], capfd: pytest.CaptureFixture[str]) -> None:
    assert served({"reserve": 900 * MIB}, os.getuid()) == ""
    theirs = served({"unit": UNIT, "pids": [PEER]}, os.getuid())
    assert theirs == f"process {PEER} is not a child of the one that asks, {os.getpid()}"
    if os.getuid():
        assert "is not served here" in served({"reserve": 900 * MIB}, os.getuid() + 1)
    assert "refused: " in capfd.readouterr().err


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"[" * 4000 + b"\n", id="deeper than the reader goes"),
        pytest.param(b'{"reserve": ' + b"9" * 3900 + b"}\n", id="a number that no float holds"),
        pytest.param(b"\xff\xfe\n", id="no text"),
        pytest.param(b"x" * 9000, id="more than is read"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_whatever_is_sent_it_goes_on(made: Made, tmp_path: Path, sent: bytes) -> None:
    made.says = "no"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as wire:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        wire.connect(str(tmp_path / "s"))
        wire.sendall(sent)
        wire.shutdown(socket.SHUT_WR)
        serve(listener, os.getuid(), made.machine)
        assert b'"error": ""' not in wire.recv(9000)


def test_who_says_it_bit_by_bit_has_no_more_time(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(scopes, "_SAID_WITHIN_S", 0.2)
    over = threading.Event()

    def drip(wire: socket.socket) -> None:
        with contextlib.suppress(OSError):  # nobody listens any more: that is what is waited for
            while not over.wait(0.02):
                wire.sendall(b" ")

    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as wire:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        wire.connect(str(tmp_path / "s"))
        thread = threading.Thread(target=drip, args=(wire,))
        thread.start()
        side = threading.Thread(target=serve, args=(listener, os.getuid(), made.machine), daemon=True)
        side.start()
        side.join(60)
        over.set()
        thread.join()
        assert not side.is_alive()
    assert "timed out" in capfd.readouterr().err


def test_a_number_that_went_to_another_meanwhile_is_not_handed_over(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    monkeypatch.setattr(scopes.os, "chown", lambda path, *_, **__: given.append(path))

    def systemd(command: Sequence[str]) -> str:
        said = made.run(command)
        status = made.folder / f"proc/{CHILD}/status"
        status.write_text(status.read_text().replace(f"PPid:\t{PEER}", "PPid:\t1"))
        return said

    with pytest.raises(Refused, match="not a child"):
        answer({"unit": UNIT, "pids": [PEER, CHILD]}, PEER, UID, made.machine._replace(run=systemd))
    assert given == []


def test_who_finds_all_places_taken_waits_for_one(tmp_path: Path, made: Made) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener, contextlib.ExitStack() as idle:
        listener.bind(path)
        listener.listen(1)
        while True:
            one = idle.enter_context(socket.socket(socket.AF_UNIX))
            one.setblocking(False)
            if one.connect_ex(path):
                break
        said: list[str] = []
        asks = threading.Thread(target=lambda: said.append(ask({"reserve": 900 * MIB}, path)))
        asks.start()
        idle.close()  # they say nothing, and go
        while not said and asks.is_alive():
            listener.settimeout(2)
            serve(listener, os.getuid(), made.machine)
            asks.join(0.05)
        assert said == [""]


def test_where_nobody_listens_that_is_said(tmp_path: Path) -> None:
    assert ask({"reserve": 1}, str(tmp_path / "none")) == f"{tmp_path}/none: [Errno 2] No such file or directory"
