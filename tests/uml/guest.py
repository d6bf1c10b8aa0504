"""Runs inside a small machine with systemd and cgroup v2, as root: real limits, real deaths. Prints one JSON line."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, "/opt/tidegate")

from placement.runner import cgroup
from placement.runner.containment import Plan, read_held
from placement.runner.identity import alive
from placement.runner.ladder import KINDS, Machine, choose
from placement.runner.launch import launch
from placement.runner.record import read_exit, read_started
from placement.runner.scopes import limit_slice, spawn
from placement.runner.stop_request import request_stop

MIB = 1 << 20
HOG = "b = b'x' * ({mib} << 20); print('got it', flush=True); import time; time.sleep(300)"


def run(name: str, plan: Plan, command: str, limit: int | None) -> Path:
    folder = Path(os.environ.get("RUNS", "/root/runs")) / name
    (folder / "control").mkdir(parents=True)
    spec = {
        "job_id": 7, "attempt": 1, "command": command, "cwd": "/tmp", "env": {"PATH": "/usr/bin:/bin"}, "grace_s": 1.0,
        "containment": plan._replace(name=f"tidegate-{name}", limit=limit)._asdict(),
    }  # fmt: skip
    (folder / "control/spec.json").write_text(json.dumps(spec))
    result = launch(folder, timeout_s=30)
    if not result.ok:
        raise RuntimeError(f"{name}: {result.message}")
    return folder


def kept(name: str, plan: Plan, command: str, limit: int) -> Path:
    """Start a run until one is kept in its memory: an emulated systemd, just booted, may be too slow for the runner."""
    whys = []
    for number in range(4):
        folder = run(f"{name}{number or ''}", plan, command, limit)
        held = read_held(folder)
        if held is not None and held.limit is not None:
            return folder
        whys.append(held.why if held else "no record")
        request_stop(folder, "cancel", 0.0)
        until(lambda folder=folder: read_exit(folder), "the end of a run that nothing keeps")
    raise RuntimeError(f"nothing keeps {name} in its memory: {whys}")


def until(what: Any, of: str, seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := what()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {seconds:g} s for {of}")
        time.sleep(0.05)
    return found


def hog(mib: int) -> str:
    return f'/usr/bin/python3 -c "{HOG.format(mib=mib)}"'


def story(plan: Plan, mark: str) -> dict[str, Any]:
    """One neighbour under its limit, one run over it, one cancelled: what became of each."""
    neighbour = kept(f"{mark}-neighbour", plan, f"{hog(60)} & wait", 120 * MIB)
    until(lambda: b"got it" in (neighbour / "stdout.log").read_bytes(), "the neighbour's memory")
    began = time.monotonic()
    over = kept(f"{mark}-over", plan, f"{hog(200)}; echo went on; sleep 300", 100 * MIB)
    started = time.monotonic() - began
    ended = until(lambda: read_exit(over), "the end of the run over its limit")
    beside = read_held(neighbour)
    told: dict[str, Any] = {
        "held": beside._asdict() if beside else None,
        "start_s": round(started, 2),
        "over": {"code": ended.code, "signal": ended.signal, "cgroup": ended.cgroup, "stopped_by": ended.stopped_by},
        "neighbour_runs": alive(read_started(neighbour).child),  # type: ignore[union-attr]
        "need": cgroup.need(beside.group) if beside else None,
        "runner_in_group": read_started(neighbour).runner.pid in cgroup.pids(beside.group) if beside else None,  # type: ignore[union-attr]
    }
    if beside is not None and beside.limit is not None:
        cgroup.set_limit(beside.group, 300 * MIB)
        told["raised"] = cgroup.limit_of(beside.group)
    request_stop(neighbour, "cancel", 0.0)
    gone = until(lambda: read_exit(neighbour), "the end of the neighbour")
    told["cancelled"] = {"signal": gone.signal, "killed": gone.killed}
    told["removed"] = bool(beside and until(lambda: not os.path.exists(beside.group.path), "the group's end"))
    return told


def as_account(name: str) -> dict[str, Any]:
    """The same as an account of its own, whose systemd runs: in a child, so that root comes back."""
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            account = pwd.getpwnam(name)
            os.initgroups(name, account.pw_gid)
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)
            os.environ["RUNS"] = f"/home/{name}/runs"
            choice = choose(machine=Machine(euid=account.pw_uid))
            found = {"kind": choice.plan.kind, "tried": choice.tried, **story(choice.plan, name)}
        except BaseException as error:
            found = {"error": "".join(traceback.format_exception(error))}
        os.write(write, json.dumps(found).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        return json.loads(file.read())  # type: ignore[no-any-return]


def in_a_unit(name: str, *more: str) -> dict[str, Any]:
    """The same in a unit of an account without a systemd of its own."""
    properties = [f"--property={p}" for p in (f"User={name}", f"Environment=RUNS=/home/{name}/runs", *more)]
    command = ["systemd-run", "--quiet", "--wait", "--pipe", *properties, sys.executable, __file__, name]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    lines = said.stdout.splitlines()
    return json.loads(lines[-1]) if lines else {"error": said.stderr[-2000:]}


def strangers() -> dict[str, str]:
    """What root's side says to others, and to its account about what is not that account's own."""
    asks = "import sys; sys.path.insert(0, '/opt/tidegate'); from placement.runner.scopes import ask; import os; "
    asks += "print(ask({'unit': 'tidegate-x.scope', 'pids': [%s]}, '/run/tidegate/scopes-1002.sock'))"
    told = {}
    for what, name, pids in (
        ("another", "bob", "os.getpid()"),
        ("init", "cyd", "1"),
        ("beside", "cyd", "os.getppid()"),
    ):
        command = ["setpriv", f"--reuid={name}", f"--regid={name}", "--clear-groups", sys.executable, "-c", asks % pids]
        told[what] = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout.strip()
    return told


def reserve() -> list[str]:
    """Return the limit of all jobs together after root set one, and after the account that root serves did."""
    slice_ = Path("/sys/fs/cgroup/tidegate.slice/memory.max")
    spawn(limit_slice("system", 600 * MIB))
    asks = "import sys; sys.path.insert(0, '/opt/tidegate'); from placement.runner.scopes import ask; "
    asks += f"print(ask({{'reserve': {500 * MIB}}}, '/run/tidegate/scopes-1002.sock'))"
    first = slice_.read_text().strip()
    subprocess.run(["setpriv", "--reuid=cyd", "--regid=cyd", "--clear-groups", sys.executable, "-c", asks], check=False)
    return [first, slice_.read_text().strip()]


def by_ladder(mark: str) -> dict[str, Any]:
    choice = choose()
    return {"kind": choice.plan.kind, "tried": choice.tried, **story(choice.plan, mark)}


def main() -> None:
    if len(sys.argv) == 2:
        print(json.dumps(by_ladder(sys.argv[1])))
        return
    told: dict[str, Any] = {"kinds": KINDS}
    stories = {
        "root": lambda: by_ladder("root"),
        "ada": lambda: as_account("ada"),
        "bob": lambda: in_a_unit("bob", "Delegate=yes"),  # its group was handed over to it
        "cyd": lambda: in_a_unit("cyd") | {"asked": strangers(), "reserve": reserve()},  # root makes its scopes
    }
    for name, what in stories.items():
        try:
            told[name] = what()
        except Exception as error:
            told[name] = {"error": "".join(traceback.format_exception(error))}
    print(f"\nTIDEGATE {json.dumps(told)}\n", flush=True)


if __name__ == "__main__":
    main()
