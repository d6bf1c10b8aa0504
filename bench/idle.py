"""What the service costs while nothing happens: CPU and memory by process, beside bare parts of the same kind.

    python -m bench.idle [--seconds 60] [--broker redis|files] [--simulate 2x24GiB] [--no-floor] [--json]

CPU is the share of one core that a process used over the span (user and system time); memory is its proportional
size (PSS) at the end of it, so pages that several share count once in all. The floor, for the same span: a solo
Celery worker and a beat that send and take an empty task a second over Redis, and gunicorn with one page.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.floor import CELERY, ROOT
from tests.servers import redis
from tests.service import live_service
from tests.wait import until

TICK = os.sysconf("SC_CLK_TCK")
SETTLE = 15.0  # seconds after the start that are not counted


def tree(pid: int) -> list[int]:
    """Return a process and all below it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += tree(int(child))
    return found


def cpu(pid: int, *, ended_children: bool = False) -> float:
    """Return the seconds of CPU that a process has used, with those of its children that it saw end if asked."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11 : 15 if ended_children else 13]) / TICK


def pss(pid: int) -> float:
    """Return a process's proportional size in MiB."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def watch(named: dict[int, str], seconds: float) -> list[dict[str, Any]]:
    """Return name, CPU share of one core in percent and PSS in MiB of processes over a span from now."""
    began, before = time.monotonic(), {pid: cpu(pid) for pid in named}
    time.sleep(seconds)
    span = time.monotonic() - began
    return [
        {"name": name, "cpu": (cpu(pid) - before[pid]) / span * 100, "pss": pss(pid)} for pid, name in named.items()
    ]


def service(seconds: float, broker: str, simulate: str) -> list[dict[str, Any]]:
    """Return the figures of an idle service."""
    with live_service(broker=broker, simulate=simulate) as live:
        time.sleep(SETTLE)
        children = live.up()["children"]
        named = {live.up()["pid"]: "supervisor"}
        for name, child in children.items():
            for number, pid in enumerate(tree(child["pid"])):
                named[pid] = name.partition("@")[0] + (f" child {number}" if number else "")
        return watch(named, seconds)


@contextmanager
def _bare() -> Iterator[dict[int, str]]:
    hello = "def app(environ, start):\n    start('200 OK', [])\n    return [b'hello']\n"
    quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "ERROR")
    with redis() as url, tempfile.TemporaryDirectory(prefix="bare-") as folder:
        (Path(folder) / "hello.py").write_text(hello)
        gunicorn = (sys.executable, "-m", "gunicorn", "hello:app", "--bind", f"unix:{folder}/web.sock")
        environment = {
            **os.environ,
            "ECHO_BROKER": url,
            "ECHO_OUT": "/dev/null",
            "ECHO_BEAT": "1",
            "PYTHONPATH": f"{ROOT}:{folder}",
        }
        calls = {
            "celery solo": [*CELERY, "worker", "-n", "bare", "-Q", "echo.second", "-P", "solo", *quiet],
            "celery beat": [*CELERY, "beat", "--pidfile=", "-s", f"{folder}/beat", "--loglevel", "ERROR"],
            "gunicorn": [*gunicorn, "-k", "gthread", "--threads", "8", "--log-level", "error"],
        }
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        running = {n: subprocess.Popen(c, env=environment, cwd=folder, **silent) for n, c in calls.items()}
        try:
            until((Path(folder) / "web.sock").exists, 20, "gunicorn")
            time.sleep(SETTLE / 2)
            named: dict[int, str] = {}
            for name, process in running.items():
                for number, pid in enumerate(tree(process.pid)):
                    named[pid] = name + (f" child {number}" if number else "")
            yield named
        finally:
            for process in running.values():
                process.terminate()
            for process in running.values():
                process.wait(20)


def floor(seconds: float) -> list[dict[str, Any]]:
    """Return the figures of the bare parts."""
    with _bare() as named:
        return watch(named, seconds)


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """Print one table with its sums."""
    print(f"{title:24} {'CPU %':>8} {'PSS MiB':>9}")
    for row in rows:
        print(f"  {row['name']:22} {row['cpu']:8.2f} {row['pss']:9.1f}")
    print(f"  {'all':22} {sum(r['cpu'] for r in rows):8.2f} {sum(r['pss'] for r in rows):9.1f}")


def main() -> None:
    """Print two tables and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--broker", choices=["redis", "files"], default="redis")
    parser.add_argument("--simulate", default="2x24GiB")
    parser.add_argument("--no-floor", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    ours = service(options.seconds, options.broker, options.simulate)
    bare = [] if options.no_floor else floor(options.seconds)
    processes = sum(entry.isdigit() for entry in os.listdir("/proc"))
    if options.json:
        print(json.dumps({"processes": processes, "service": ours, "floor": bare}))
        return
    print(f"{processes} processes on this machine, broker {options.broker}, over {options.seconds:g} s")
    show("the service", ours)
    if bare:
        show("bare parts", bare)
        for figure in ("cpu", "pss"):
            ratio = sum(r[figure] for r in ours) / max(0.01, sum(r[figure] for r in bare))
            print(f"{figure}: {ratio:.1f} x the bare parts")


if __name__ == "__main__":
    main()
