"""From the click to the first byte of the job's output, part by part, beside the least it could take.

    python -m bench.latency [--jobs 50] [--broker redis|files] [--json]

A service of its own is started on an empty database; jobs are submitted one after the other, each when the one
before has ended, so nothing queues. A job is ``echo $EPOCHREALTIME``: its output is the moment of its first byte.
In turn with the jobs the floor is taken: two Celery hops through idle workers, one commit, one bare runner.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sqlite3
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from bench import floor
from tests.person import Person
from tests.service import LiveService, live_service
from tests.wait import until

PARTS = ("answered", "admitted", "message taken", "runner claimed", "on record", "first byte")


def measure(service: LiveService, person: Person, number: int) -> dict[str, float]:
    """Run one job and return the milliseconds from the submission to each part."""
    began = time.time()
    # Small and declared: neither a first run's wait nor a full machine is to be measured.
    job = person.submit(f"echo $EPOCHREALTIME # {number}", gpu="none", declared_ram="16 MiB")
    answered = time.time()
    run_dir = service.data / "runs" / f"{job}-1"
    log = run_dir / "stdout.log"
    until(lambda: log.exists() and log.read_text().endswith("\n"), 20, f"the first byte of #{job}", 0.002)
    marks = {
        "answered": answered,
        "admitted": _admitted(service.data, job),
        "message taken": _taken(service.data),
        "runner claimed": (run_dir / "control" / "claim").stat().st_mtime,
        "on record": json.loads((run_dir / "control" / "started.json").read_text())["at"],
        "first byte": float(log.read_text()),
    }
    until(
        lambda: _value(service.data, "SELECT state FROM placement_job WHERE id = ?", job) == "finished", 20, "the end"
    )
    return {part: (marks[part] - began) * 1000 for part in PARTS}


def _value(data: Path, sql: str, *values: Any) -> Any:
    with closing(sqlite3.connect(f"file:{data}/tidegate.sqlite3?mode=ro", uri=True, timeout=10)) as base:
        return base.execute(sql, values).fetchone()[0]


def _admitted(data: Path, job: int) -> float:
    seconds = _value(data, "SELECT admitted_clock FROM placement_job WHERE id = ?", job)
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + float(seconds)


def _taken(data: Path) -> float:
    seconds = _value(data, "SELECT start_taken_clock FROM placement_node")
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + float(seconds)


def quantile(values: list[float], share: float) -> float:
    """Return the value that this share of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def run(jobs: int, broker: str) -> dict[str, Any]:
    """Return p50 and p95 by part and of the floor, in ms; what loads the machine loads both alike."""
    with live_service(broker=broker, simulate="") as service, ExitStack() as stack:
        link = re.search(r"/login/link/\S+", service.said())
        assert link, service.said()
        person = Person(service.address, link[0])
        until(lambda: _value(service.data, "SELECT max(tick_clock) FROM placement_node"), 20, "the first look", 0.1)
        socket = service.data / "broker" / "redis.sock"
        url = f"redis+socket://{socket}?virtual_host=1" if broker == "redis" else f"safefs://{service.data}/echo"
        once = {
            "two hops": stack.enter_context(floor.hops(url)),
            "one commit": stack.enter_context(floor.commits()),
            "bare runner": stack.enter_context(floor.runners()),
        }
        seen, least = [], []
        for number in range(-3, jobs):
            row = measure(service, person, number)
            bare = {name: call() for name, call in once.items()}
            if number >= 0:
                seen.append(row)
                least.append({**bare, "together": sum(bare.values())})
    return {
        "broker": broker,
        "jobs": jobs,
        "load": os.getloadavg()[0],
        "parts": _table(seen),
        "floor": _table(least),
        "ratio p50": _table(seen)["first byte"][0] / _table(least)["together"][0],
    }


def _table(rows: list[dict[str, float]]) -> dict[str, tuple[float, float]]:
    return {part: (quantile([r[part] for r in rows], 0.5), quantile([r[part] for r in rows], 0.95)) for part in rows[0]}


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--broker", choices=["redis", "files"], default="redis")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = run(options.jobs, options.broker)
    if options.json:
        print(json.dumps(found))
        return
    print(f"{options.jobs} jobs, broker {options.broker}, load {found['load']:.1f} on {os.cpu_count()} cores; ms")
    before = 0.0
    for part, (middle, late) in found["parts"].items():
        print(f"  {part:16} p50 {middle:7.1f} (+{middle - before:6.1f})   p95 {late:7.1f}")
        before = middle
    print("the least it could take, in turn with the jobs")
    for part, (middle, late) in found["floor"].items():
        print(f"  {part:16} p50 {middle:7.1f}             p95 {late:7.1f}")
    print(f"first byte is {found['ratio p50']:.2f} x the least")


if __name__ == "__main__":
    main()
