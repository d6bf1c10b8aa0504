"""Scopes of the system's manager, made by systemd around processes; and root's side of it for one account.

A service that is not root asks root's side over a socket for a scope around its own processes, and for nothing else.
Root runs a copy of this file that only root can change (`./tidegate units --scopes` prints how), so it imports nothing
of the project: `python3 -I scopes.py ACCOUNT`. Who may ask is told by the kernel, not by the request.

One request a connection, a line of JSON each way: {"unit": "tidegate-….scope", "pids": […]} or {"reserve": bytes},
the limit of all jobs together. The answer is {"error": ""} or says why not.
"""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

SLICE = "tidegate.slice"
_UNIT = re.compile(r"tidegate-[0-9A-Za-z-]{1,100}\.scope")
_LEAST = 64 << 20  # bytes: less than this would end all jobs at once
_MADE_WITHIN_S = 5.0
_ASKED_WITHIN_S = 8.0
_SAID_WITHIN_S = 2.0
_LONGEST = 4096  # bytes of a request
_MAY_WAIT = 128  # requests: a crowd of starts asks at once
_BUS = "/usr/bin/busctl"
_HANDED_OVER = ("cgroup.procs", "cgroup.threads", "cgroup.subtree_control")
_FOLDER = "/run/tidegate"

Run = Callable[[Sequence[str]], str]
"""Runs a program and returns "", or what it said when it failed."""


class Refused(Exception):
    """The request is not for this account to make; the message says why."""


class Machine(NamedTuple):
    """What root's side looks at; a test brings its own."""

    proc: str = "/proc"
    cgroups: str = "/sys/fs/cgroup"
    run: Run | None = None


def socket_of(uid: int) -> str:
    """Return where root's side listens for an account."""
    return f"{_FOLDER}/scopes-{uid}.sock"


def ask(request: dict[str, Any], path: str) -> str:
    """Have root's side do it; return "" when it did, else why not. Raises nothing."""
    import socket  # here alone: runners on other rungs need not carry it

    said = b""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
            deadline = time.monotonic() + _ASKED_WITHIN_S
            wire.settimeout(_ASKED_WITHIN_S)
            while (error := wire.connect_ex(path)) == errno.EAGAIN and time.monotonic() < deadline:
                time.sleep(0.02)  # more ask at once than may wait
            if error:
                raise OSError(error, os.strerror(error))
            wire.settimeout(max(1.0, deadline - time.monotonic()))
            wire.sendall(json.dumps(request).encode("ascii") + b"\n")
            while part := wire.recv(4096):
                said += part
        return str(json.loads(said)["error"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{path}: {error}"


def start_scope(unit: str, scope: str, members: Sequence[int]) -> list[str]:
    """Return the command that asks systemd for a delegated scope around these processes.

    It must not end the scope, our runner with it, for a death in the leaf of the job: that is for the runner to tell.
    """
    properties = ["Slice", "s", SLICE, "Description", "s", f"Tidegate {unit}", "Delegate", "b", "true"]
    properties += ["OOMPolicy", "s", "continue"]
    properties += ["PIDs", "au", str(len(members)), *map(str, members)]
    place = ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"]
    return [
        *(_BUS, "--user" if scope == "user" else "--system", "--quiet", "--timeout=5", "call", *place),
        *("StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "fail", "5", *properties, "0"),
    ]


def limit_slice(scope: str, size: int) -> list[str]:
    """Return the command that keeps all jobs together within so many bytes of main memory."""
    whose = ["--user"] if scope == "user" else []
    return ["/usr/bin/systemctl", *whose, "set-property", "--runtime", SLICE, f"MemoryMax={size}"]


def wait_for(unit: str, pid: int, proc: str = "/proc") -> str:
    """Return the group, in the unified tree, of a scope that systemd was asked for. OSError where none comes."""
    deadline = time.monotonic() + _MADE_WITHIN_S
    while not (inside := unified_path(pid, proc)).endswith(f"/{unit}"):
        if time.monotonic() > deadline:
            raise OSError(0, f"systemd made no scope within {_MADE_WITHIN_S:g} s")
        time.sleep(0.002)
    return inside


def unified_path(pid: int, proc_root: str = "/proc") -> str:
    """Return where a process is in the unified tree, "" where that cannot be read."""
    for line in _lines(f"{proc_root}/{pid}/cgroup"):
        if line.startswith(b"0::"):
            return os.fsdecode(line[3:])
    return ""


def spawn(command: Sequence[str]) -> str:
    """Run a program without a shell; return "" when it succeeded, else the end of what it said."""
    listen, speak = os.pipe()
    home = f"/run/user/{os.geteuid()}"
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "XDG_RUNTIME_DIR": home}
    environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={home}/bus"
    actions = [(os.POSIX_SPAWN_DUP2, speak, 2), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    try:
        pid = os.posix_spawn(command[0], list(command), environment, file_actions=actions, setsigmask=())
    except OSError as error:
        os.close(listen)
        return f"{command[0]}: {error.strerror}"
    finally:
        os.close(speak)
    said = b""
    while part := os.read(listen, 4096):
        said = (said + part)[-2000:]
    os.close(listen)
    _, status = os.waitpid(pid, 0)
    return "" if status == 0 else said.decode("utf-8", "replace").strip() or f"code {os.waitstatus_to_exitcode(status)}"


def answer(request: Any, peer: int, uid: int, machine: Machine) -> str:
    """Do what process ``peer`` of account ``uid`` asks for; return "" or what systemd said. Raise Refused."""
    run = machine.run or spawn
    if not isinstance(request, dict):
        raise Refused("a request is an object")
    if set(request) == {"reserve"}:
        size = request["reserve"]
        if not isinstance(size, int) or isinstance(size, bool) or size < _LEAST:
            raise Refused(f"a reserve that leaves {size!r} bytes is none")
        return run(limit_slice("system", size))
    unit, pids = request.get("unit"), request.get("pids")
    if set(request) != {"unit", "pids"} or not isinstance(unit, str) or not _UNIT.fullmatch(unit):
        raise Refused("there are scopes named tidegate-….scope and nothing else here")
    if not isinstance(pids, list) or not 1 <= len(pids) <= 2 or len(set(pids)) != len(pids):
        raise Refused("a scope is for one process or two")
    for pid in pids:
        _is_its_own(pid, peer, uid, machine.proc)
    said = run(start_scope(unit, "system", pids))
    if not said:
        group = machine.cgroups + wait_for(unit, pids[-1], machine.proc)
        for pid in pids:  # whoever got a number meanwhile may be another's, and what is handed over can be ended
            _is_its_own(pid, peer, uid, machine.proc)
        _hand_over(group, uid)
    return said


def _is_its_own(pid: Any, peer: int, uid: int, proc: str) -> None:
    """Raise Refused unless this is the asking process or a child of it, and the account's alone."""
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 1:
        raise Refused(f"{pid!r} is no process")
    fields = dict(line.split(b":\t", 1) for line in _lines(f"{proc}/{pid}/status") if b":\t" in line)
    if pid != peer and fields.get(b"PPid") != str(peer).encode():
        raise Refused(f"process {pid} is not a child of the one that asks, {peer}")
    if {int(word) for word in fields.get(b"Uid", b"").split()} != {uid}:
        raise Refused(f"process {pid} is not uid {uid}'s")


def _hand_over(group: str, uid: int) -> None:
    """Give the inside of a scope to the account, as its manager would: its own limit and those above stay root's."""
    for name in ("", *_HANDED_OVER):
        os.chown(os.path.join(group, name), uid, -1, follow_symlinks=False)


def _lines(path: str) -> list[bytes]:
    try:
        with open(path, "rb", buffering=0) as file:
            return (file.read(1 << 16) or b"").splitlines()
    except OSError:
        return []


def serve(listener: Any, uid: int, machine: Machine) -> None:
    """Answer one request of the account, or of root."""
    import socket
    import struct

    wire, _ = listener.accept()
    with wire:
        try:
            peer, theirs, _ = struct.unpack("3i", wire.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            if theirs not in (uid, 0):
                raise Refused(f"uid {theirs} is not served here")
            said = answer(json.loads(_line(wire)), peer, uid, machine)
        except Exception as error:  # whatever was sent must not end it for all that come later
            said = str(error) or type(error).__name__
        if said:
            sys.stderr.write(f"refused: {said}\n")
        try:
            wire.sendall(json.dumps({"error": said}).encode("ascii"))
        except OSError:
            return  # whoever asked has gone


def _line(wire: Any) -> bytes:
    """Return what comes up to the end of the line; one that says it bit by bit has no more time than the others."""
    deadline, said = time.monotonic() + _SAID_WITHIN_S, b""
    while b"\n" not in said and len(said) < _LONGEST:
        wire.settimeout(max(0.001, deadline - time.monotonic()))
        part = wire.recv(_LONGEST)
        if not part:
            break
        said += part
    wire.settimeout(_SAID_WITHIN_S)
    return said


def _listen(path: str, uid: int) -> Any:
    """Return a socket on which that account alone can connect."""
    import socket

    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if os.path.lexists(path):
        os.unlink(path)
    before = os.umask(0o177)
    listener.bind(path)
    os.umask(before)
    os.chown(path, uid, -1)
    listener.listen(_MAY_WAIT)
    return listener


def _ready() -> None:
    """Tell systemd that the socket is there, so that the service starts after it."""
    import socket

    where = os.environ.get("NOTIFY_SOCKET", "")
    if where:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
            wire.sendto(b"READY=1", f"\0{where[1:]}" if where[0] == "@" else where)


def main(arguments: Sequence[str]) -> int:
    """Serve one account until somebody ends this."""
    import pwd

    if len(arguments) != 1 or os.geteuid() != 0:
        sys.stderr.write("as root: scopes.py ACCOUNT\n")
        return 2
    uid = pwd.getpwnam(arguments[0]).pw_uid
    if uid == 0:
        sys.stderr.write("root needs nobody to ask\n")
        return 2
    listener = _listen(socket_of(uid), uid)
    _ready()
    while True:
        serve(listener, uid, Machine())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
