"""Which way of keeping jobs in their memory this machine has: the first rung on which a real probe passes.

A probe makes a group, limits it to 64 MB, reads the limit back and removes it. All paths are below given roots, so
that a test can bring a machine of its own. Service side.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import NamedTuple

from placement.runner import cgroup
from placement.runner.cgroup import Group
from placement.runner.containment import SERVED, WATCHED, Plan, group_of, hold
from placement.runner.identity import read_bytes
from placement.runner.scopes import SLICE, Run, socket_of, spawn, unified_path

AUTO = "auto"
KINDS = ("scope", "direct", "user", "delegated", "container", "v1", WATCHED)
"""The rungs, the best first; each can be asked for by name."""
_PROBE_BYTES = 64 << 20
_LEAF = "service"  # where our own processes go in a group that is to hand its controllers down


class Machine(NamedTuple):
    """What a probe looks at. ``settle``: our own processes may be moved to a leaf, which only a worker should do."""

    root: str = "/sys/fs/cgroup"
    proc: str = "/proc"
    systemd: str = "/run/systemd/system"
    euid: int = os.geteuid()
    settle: bool = True
    run: Run = spawn


class Choice(NamedTuple):
    """The plan without a job in it, and the rungs above it that were tried, each with the reason why not."""

    plan: Plan
    tried: tuple[tuple[str, str], ...]


class Unfit(Exception):
    """This rung is not to be had; the message says why."""


def choose(wanted: str = AUTO, machine: Machine | None = None) -> Choice:
    """Return the best way that works here. Never raises: the last rung needs nothing."""
    here = machine or Machine()
    tried: list[tuple[str, str]] = []
    for kind, rung in _RUNGS.items():
        if wanted not in (AUTO, kind):
            continue
        try:
            plan = rung(here)
            _prove(plan, here)
        except Unfit as error:
            tried.append((kind, str(error)))
        except OSError as error:
            tried.append((kind, f"{error.filename or 'the probe'}: {error.strerror or error}"))
        else:
            return Choice(plan, tuple(tried))
    return Choice(_watched(here), tuple(tried))


def _scope(machine: Machine) -> Plan:
    if not os.path.isdir(machine.systemd):
        raise Unfit("systemd does not run this machine")
    if machine.euid == 0:
        return Plan("scope", scope="system", root=machine.root)
    if not os.path.exists(socket_of(machine.euid)):
        raise Unfit("only root may ask for a scope of the system; './tidegate units --scopes' has root make them")
    return Plan("scope", scope=SERVED, root=machine.root)


def _user(machine: Machine) -> Plan:
    if not os.path.isdir(machine.systemd):
        raise Unfit("systemd does not run this machine")
    if machine.proc == "/proc" and not os.path.exists(f"/run/user/{machine.euid}/bus"):
        raise Unfit(
            f"this account has no systemd of its own running; 'loginctl enable-linger {machine.euid}' starts it"
        )
    return Plan("user", scope="user", root=machine.root)


def _direct(machine: Machine) -> Plan:
    if machine.euid != 0:
        raise Unfit("only root may make groups at the top")
    if os.path.isdir(machine.systemd):
        raise Unfit("systemd rules the groups of this machine")
    if os.path.exists(os.path.join(_memory_v2(machine), "cgroup.type")):
        raise Unfit("this is the group of a container, not of the machine")
    return _below(machine.root, "direct", machine)


def _delegated(machine: Machine) -> Plan:
    own = _own(machine)
    if own == machine.root:
        raise Unfit("we are in no group of our own")
    return _below(own, "delegated", machine)


def _container(machine: Machine) -> Plan:
    if _own(machine) != machine.root or not os.path.exists(os.path.join(machine.root, "cgroup.type")):
        raise Unfit("we are in no group of a container")
    return _below(machine.root, "container", machine)


def _v1(machine: Machine) -> Plan:
    mine = next((where for names, where in _lines(machine) if "memory" in names), None)
    if mine is None:
        raise Unfit("main memory is not governed by cgroup v1")
    top = os.path.join(machine.root, "memory")
    folder = os.path.join(top, mine.strip("/")).rstrip("/")
    if not os.path.isdir(folder):
        folder = top  # the path is the host's; what is mounted here is our own group
    # As high as nothing limits us on the way: a group below ours would end with whoever cleans up after ours.
    while folder != top and cgroup.limit_of(Group("", folder, 1)) is None and _writable(os.path.dirname(folder)):
        folder = os.path.dirname(folder)
    if not _writable(folder):
        raise Unfit(f"{folder} is not ours to write")
    slice_ = os.path.join(folder, SLICE)
    _mkdir(slice_)
    if read_bytes(os.path.join(slice_, "memory.use_hierarchy")) == b"0\n":
        cgroup.write(os.path.join(slice_, "memory.use_hierarchy"), "1")
    return Plan("v1", base=_tree(machine), memory=slice_, root=machine.root)


def _watched(machine: Machine) -> Plan:
    """Return the plan without a limit: a group still tells who belongs to a job, and ends it."""
    return Plan(WATCHED, base=_tree(machine), root=machine.root)


def _tree(machine: Machine) -> str:
    """Return a folder in the unified tree in which groups without controllers can be made, "" where none is."""
    top = _unified(machine)
    own = os.path.join(top, unified_path(os.getpid(), machine.proc).strip("/")).rstrip("/")
    for folder in (own, top):
        slice_ = os.path.join(folder, SLICE)
        if os.path.exists(os.path.join(folder, "cgroup.procs")) and (_writable(folder) or os.path.isdir(slice_)):
            try:
                _mkdir(slice_)
                _prove_tree(slice_)
            except OSError:
                continue
            return slice_
    return ""


def _prove_tree(slice_: str) -> None:
    probe = os.path.join(slice_, f"probe-{os.getpid()}")
    _mkdir(probe)
    try:
        cgroup.write(os.path.join(probe, "cgroup.kill"), "1")
    finally:
        os.rmdir(probe)


def _below(folder: str, kind: str, machine: Machine) -> Plan:
    """Return a plan with the slice below this folder, which must hand the memory controller down to it."""
    if "memory" not in _words(folder, "cgroup.controllers"):
        raise Unfit(f"{folder} has no memory controller")
    if not _writable(folder):
        raise Unfit(f"{folder} is not ours to write")
    if "memory" not in _words(folder, "cgroup.subtree_control"):
        _settle(folder, machine)
        cgroup.write(os.path.join(folder, "cgroup.subtree_control"), "+memory")
    slice_ = os.path.join(folder, SLICE)
    _mkdir(slice_)
    cgroup.write(os.path.join(slice_, "cgroup.subtree_control"), "+memory")
    return Plan(kind, base=slice_, root=machine.root)


def _settle(folder: str, machine: Machine) -> None:
    """Move the processes of a group to a leaf of it: one that holds processes hands no controller down."""
    if not os.path.exists(os.path.join(folder, "cgroup.type")):
        return  # the top of the machine may hold both
    inside = _words(folder, "cgroup.procs")
    if inside and not machine.settle:
        raise Unfit(f"{folder} holds processes; the worker moves them to a leaf when it starts")
    _mkdir(os.path.join(folder, _LEAF))
    for _ in range(10):  # whoever is forked meanwhile is born where its parent was
        for pid in inside:
            try:
                cgroup.write(os.path.join(folder, _LEAF, "cgroup.procs"), pid)
            except ProcessLookupError:
                continue
        inside = _words(folder, "cgroup.procs")
        if not inside:
            return


def _prove(plan: Plan, machine: Machine) -> None:
    """Make a group, limit it, read the limit back, remove it. Unfit or OSError where one of these fails."""
    plan = plan._replace(name=f"tidegate-probe-{os.getpid()}", limit=_PROBE_BYTES)
    if plan.scope:
        _prove_scope(plan, machine)
        return
    group = group_of(plan)
    try:
        cgroup.make(group)
        cgroup.set_limit(group, _PROBE_BYTES)
        told = cgroup.limit_of(group)
    finally:
        cgroup.remove(group)
    if told != _PROBE_BYTES:
        raise Unfit(f"a limit of {_PROBE_BYTES} bytes reads back as {told}")


def _prove_scope(plan: Plan, machine: Machine) -> None:
    others = [os.posix_spawn("/bin/sleep", ["sleep", "30"], {}) for _ in range(2)]
    try:
        held = hold(plan, others[0], others[1], machine.run)
        if held is None or held.limit is None:
            raise Unfit(held.why if held else "no group was made")
        told = cgroup.limit_of(held.group)
        if told != _PROBE_BYTES:
            raise Unfit(f"a limit of {_PROBE_BYTES} bytes reads back as {told}")
    finally:
        for pid in others:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _memory_v2(machine: Machine) -> str:
    top = _unified(machine)
    if top != machine.root or "memory" not in _words(top, "cgroup.controllers"):
        raise Unfit("cgroup v2 does not govern main memory here")
    return top


def _unified(machine: Machine) -> str:
    if os.path.exists(os.path.join(machine.root, "cgroup.controllers")):
        return machine.root
    return os.path.join(machine.root, "unified")


def _own(machine: Machine) -> str:
    """Return the folder of the group that we are in; of the leaf to which a worker moved itself, the one above."""
    _memory_v2(machine)
    folder = os.path.join(machine.root, unified_path(os.getpid(), machine.proc).strip("/")).rstrip("/")
    return os.path.dirname(folder) if os.path.basename(folder) == _LEAF else folder


def _lines(machine: Machine) -> Iterator[tuple[list[str], str]]:
    for line in os.fsdecode(read_bytes(os.path.join(machine.proc, "self/cgroup")) or b"").splitlines():
        _, _, rest = line.partition(":")
        names, _, where = rest.partition(":")
        yield names.split(","), where


def _words(folder: str, name: str) -> list[str]:
    return (read_bytes(os.path.join(folder, name)) or b"").decode("ascii", "replace").split()


def _writable(folder: str) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def _mkdir(path: str) -> None:
    if not os.path.isdir(path):
        os.mkdir(path, 0o755)


_RUNGS: dict[str, Callable[[Machine], Plan]] = {
    "scope": _scope,
    "direct": _direct,
    "user": _user,
    "delegated": _delegated,
    "container": _container,
    "v1": _v1,
}
