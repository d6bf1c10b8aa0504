"""How many jobs a second go through the whole service: submitted, admitted, run as processes, reaped, recorded.

    python -m bench.throughput [--jobs 1000] [--broker redis|files] [--clients 2] [--array] [--different] [--undeclared]
                               [--rounds 1] [--peers all|none|NAME,...] [--peer-venv DIR] [--first-bytes 20] [--json]

A service of its own is started on an empty database. Jobs are submitted through the API, one by one by ``--clients``
programs at once on connections that they keep, or with ``--array`` as one array; the clock runs from the first
submission to the moment at which the last job is finished in the database. A job is a process that writes down when it
ran and ends. It declares the memory that it needs, unless ``--undeclared``; all have one command, unless
``--different``. In the same run, before and after: how often /bin/true and ``python -c pass`` start, two at a time,
and bare runners. With ``--peers`` each peer that is installed gets such commands by its own front door (bench.peers),
and all are asked how long one job takes to its first byte when nothing queues.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sqlite3
import statistics
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench import bare, marks, peers
from bench.idle import cpu, tree
from bench.peers.tools import Tools
from tests.person import Person
from tests.service import LiveService, live_service
from tests.wait import until

WARM = 3  # jobs before any is counted
PATIENCE = 600.0  # seconds after which a run is given up


class Line:
    """Submissions of one person over kept connections, one for each thread, as a program that has many would send."""

    def __init__(self, person: Person) -> None:
        self._kept = threading.local()
        self._host = urlsplit(person.address).netloc
        self._headers = {
            "Content-Type": "application/json",
            "Cookie": "; ".join(f"{cookie.name}={cookie.value}" for cookie in person.cookies),
            "X-CSRFToken": person.token(),
            "Referer": person.address,
        }

    def submit(self, body: dict[str, Any]) -> int:
        """Return the id of the new job; a connection that the service closed meanwhile is opened again."""
        for left in (1, 0):
            try:
                kept = self._kept.__dict__.setdefault("line", HTTPConnection(self._host, timeout=30))
                kept.request("POST", "/api/v1/jobs", json.dumps(body), self._headers)
                answer = kept.getresponse()
                said = answer.read()
            except (HTTPException, ConnectionError):
                self._kept.__dict__.pop("line").close()
                if not left:
                    raise
                continue
            if answer.status != 201:
                raise RuntimeError(f"a submission was answered with {answer.status}: {said[:300]!r}")
            return int(json.loads(said)["job"]["id"])
        raise AssertionError("both tries are over")


def service_cpu(service: LiveService) -> dict[str, float]:
    """Return the CPU seconds that each part of the service has used, with what it started and saw end."""
    return {
        name.partition("@")[0]: sum(cpu(pid, ended_children=True) for pid in tree(child["pid"]))
        for name, child in service.up()["children"].items()
    }


def finished(data: Path) -> int:
    """Return how many jobs the database says are finished."""
    with closing(sqlite3.connect(f"file:{data}/tidegate.sqlite3?mode=ro", uri=True, timeout=10)) as base:
        return int(base.execute("SELECT count(*) FROM placement_job WHERE state = 'finished'").fetchone()[0])


def waits(data: Path, submitted: dict[int, float]) -> tuple[list[float], list[str]]:
    """Return seconds from each submission to the job's end, and outcomes other than completed."""
    with closing(sqlite3.connect(f"file:{data}/tidegate.sqlite3?mode=ro", uri=True, timeout=10)) as base:
        rows = base.execute(
            "SELECT id, outcome, (julianday(ended_at) - 2440587.5) * 86400.0 FROM placement_job"
        ).fetchall()
    ends = [at - submitted[job] for job, _, at in rows if job in submitted]
    return ends, [outcome for _, outcome, _ in rows if outcome != "completed"]


def ours(
    jobs: int, broker: str, clients: int, *, array: bool, different: bool, declared: bool, first_bytes: int
) -> dict[str, Any]:
    """Return the figures of this service for so many jobs."""
    with live_service(broker=broker, simulate="") as service, tempfile.TemporaryDirectory(prefix="marks-") as folder:
        link = re.search(r"/login/link/\S+", service.said())
        assert link, service.said()
        person = Person(service.address, link[0])
        fields: dict[str, Any] = {"gpu": "none"} | ({"declared_ram": "16 MiB"} if declared else {})
        ledger = marks.Ledger(Path(folder))

        line = Line(person)

        def submit(number: int, **more: Any) -> int:
            command = ledger.command("$TIDEGATE_JOB_ID") + (f" # {number}" if different else "")
            return line.submit({"command": command, "cwd": "/tmp", **fields, **more})

        def alone(number: int) -> float:
            began = time.time()
            job = submit(-number)
            return until(lambda: ledger.times().get(job), 60, f"#{job}", 0.002) - began

        for number in range(WARM):  # the first ones meet caches that are empty
            alone(number)
        first = [alone(number) for number in range(WARM, WARM + first_bytes)]
        until(lambda: finished(service.data) == WARM + first_bytes, 60, "the jobs one by one", 0.05)
        before, began, submitted = service_cpu(service), time.time(), {}

        def send(number: int) -> None:
            at = time.time()
            submitted[submit(number)] = at

        if array:
            head = submit(0, array=jobs)
            submitted = dict.fromkeys(range(head, head + jobs), began)
        else:
            with ThreadPoolExecutor(clients) as pool:
                list(pool.map(send, range(jobs)))
        sent = time.time()
        until(lambda: finished(service.data) >= jobs + WARM + first_bytes, PATIENCE, "the end of all jobs", 0.05)
        ended = time.time()
        used = {name: seconds - before[name] for name, seconds in service_cpu(service).items()}
        seconds, wrong = waits(service.data, submitted)
        assert ledger.seen() >= set(submitted), "a job did not run"
        return {
            "name": "tidegate",
            "jobs": jobs,
            "submitting": sent - began,
            "seconds": ended - began,
            "rate": jobs / (ended - began),
            "p50": bare.quantile(seconds, 0.5),
            "p95": bare.quantile(seconds, 0.95),
            "cpu": sum(used.values()),
            "cpu by part": used,
            "first byte p50": bare.quantile(first, 0.5) if first else None,
            "first byte p95": bare.quantile(first, 0.95) if first else None,
            "not completed": len(wrong),
        }


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--broker", choices=["redis", "files"], default="redis")
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--array", action="store_true")
    parser.add_argument("--different", action="store_true")
    parser.add_argument("--undeclared", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--peers", default="none")
    parser.add_argument("--peer-venv", default="")
    parser.add_argument("--first-bytes", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = []
    for _ in range(options.rounds):
        floor = bare.rates()
        rows = [
            ours(
                options.jobs,
                options.broker,
                options.clients,
                array=options.array,
                different=options.different,
                declared=not options.undeclared,
                first_bytes=options.first_bytes,
            )
        ]
        tools = Tools(options.peer_venv)
        there, missing = peers.wanted(options.peers, tools)
        rows += [peers.measure(peer, tools, options.jobs, options.first_bytes) for peer in there]
        after = bare.rates()
        floor = {name: (rate + after[name]) / 2 for name, rate in floor.items()}
        found.append({"floor": floor, "rows": rows, "missing": missing, "load": os.getloadavg()[0]})
    if options.json:
        print(json.dumps({"jobs": options.jobs, "broker": options.broker, "rounds": found}))
        return
    for one in found:
        show(options.jobs, options.broker, one)
    if len(found) > 1:
        middle = statistics.median(one["rows"][0]["rate"] for one in found)
        share = statistics.median(one["rows"][0]["rate"] / one["floor"]["python -c pass"] for one in found)
        print(f"median of {len(found)}: {middle:.1f} jobs/s, {share:.2f} x python -c pass")


def show(jobs: int, broker: str, one: dict[str, Any]) -> None:
    """Print the table of one round."""
    floor = one["floor"]
    print(f"{jobs} jobs, broker {broker}, load {one['load']:.1f} on {os.cpu_count()} cores")
    print("a second on two cores: " + ", ".join(f"{name} {rate:.0f}" for name, rate in floor.items()))
    print(
        f"{'':14}{'jobs':>5}{'submitted s':>12}{'all s':>8}{'jobs/s':>8}{'p50 s':>8}{'p95 s':>8}{'CPU s':>8}"
        f"{'1st byte ms':>13}{'p95':>7}{'x python':>10}"
    )
    for row in one["rows"]:
        if "error" in row:
            print(f"{row['name']:18} failed: {row['error']}")
            continue
        first = row["first byte p50"]
        alone = (
            f"{first * 1000:13.0f}{row['first byte p95'] * 1000:7.0f}" if first is not None else f"{'-':>13}{'-':>7}"
        )
        used = f"{row['cpu']:8.1f}" if row["cpu"] is not None else f"{'-':>8}"
        print(
            f"{row['name']:14}{row['jobs']:5}{row['submitting']:12.1f}{row['seconds']:8.1f}{row['rate']:8.1f}{row['p50']:8.2f}"
            f"{row['p95']:8.2f}{used}{alone}{row['rate'] / floor['python -c pass']:10.2f}"
        )
        if "cpu by part" in row:
            print("  CPU s: " + ", ".join(f"{name} {spent:.1f}" for name, spent in row["cpu by part"].items()))
        if row["not completed"]:
            print(f"  {row['not completed']} did not complete")
    for name, why in one["missing"].items():
        print(f"{name:18} not here: {why}")


if __name__ == "__main__":
    main()
