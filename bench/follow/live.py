"""The service's side: the real `up` with simulated devices, people who submit on the trace's clock, real jobs."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
import tempfile
import threading
import time
import urllib.error
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.follow import ledger
from bench.follow.figures import Course
from bench.follow.played import shape
from bench.world.submissions import Submission
from tests.person import Person, Refusal
from tests.service import REPOSITORY, LiveService, live_service
from tests.wait import until

MIB = 1 << 20
PATIENCE = 900.0  # seconds after the last submission
PEOPLE = (
    "from django.contrib.auth.models import User; from placement.services import members; "
    "admin, _ = members.first_admin(); "
    "[print(name, members.add_user(admin, name, 'admin')[1]) for name in {names!r}]"
)
SCRIPT = "import sys\nsys.path.insert(0, {root!r})\nfrom bench.follow import job\nsys.exit(job.main())\n"


@dataclass
class Killed:
    """What a kill -9 of the whole service met: seconds on the trace's clock, and who waited in which order."""

    at: float = 0.0
    back: float = 0.0
    running: int = 0
    before: list[int] = field(default_factory=list)
    after: list[int] = field(default_factory=list)

    def swapped(self) -> int:
        """Return how many neighbours in the queue before stand the other way round after."""
        still = [job for job in self.before if job in self.after]
        there = [job for job in self.after if job in self.before]
        return sum(a != b for a, b in zip(still, there, strict=True))


class Crowd:
    """One person a script, as the replay has it, at a service that may come back at another address."""

    def __init__(self, service: LiveService, names: Sequence[str]) -> None:
        done = service.manage("shell", "-v", "0", "-c", PEOPLE.format(names=list(names)))
        if done.returncode:
            raise RuntimeError(f"people could not be made: {done.stderr[-2000:]}")
        tokens = dict(line.split() for line in done.stdout.splitlines() if len(line.split()) == 2)
        self.people = {name: Person(service.address, f"/login/link/{tokens[name]}") for name in names}

    def moved(self, address: str) -> None:
        """Ask at another address from now on."""
        for person in self.people.values():
            person.address = address

    def submit(self, name: str, body: dict[str, Any]) -> None:
        """Submit, again and again while the service is away; the form's key makes one job of all."""

        def sent() -> bool:
            try:
                self.people[name].call("/api/v1/jobs", body)
            except Refusal as refusal:
                if refusal.status < 500:
                    raise
                return False
            except (urllib.error.URLError, OSError):
                return False
            return True

        until(sent, 60, "the service to take a submission", 0.1)


def queue(person: Person) -> list[int]:
    """Return who waits, in the queue's order."""
    return [int(job["id"]) for job in person.call("/api/v1/queue")["queued"]]


def lay_out(folder: Path, rows: Sequence[Submission]) -> None:
    """Write down what each job does, and a script for each that the rows name."""
    pieces = {row.id: [[p.begin, p.end, p.low, p.high, p.busy] for p in shape(row).pieces] for row in rows}
    (folder / "rows.json").write_text(json.dumps(pieces))
    (folder / "ran").touch()
    for script in {row.script for row in rows}:
        (folder / f"{script}.py").write_text(SCRIPT.format(root=str(REPOSITORY)))


def body_of(row: Submission, folder: Path) -> dict[str, Any]:
    """Return the submission of one row: its command is its key, its figures are in its environment."""
    script, _, argument = row.key.partition(":")
    return {
        "command": f"{sys.executable} -S {script}.py --kind {argument or 'only'}",
        "cwd": str(folder),
        "name": f"row {row.id}",
        "form_key": f"row {row.id}",
        "environment": {"ROW": str(row.id), "FOLDER": str(folder)},
        "gpu": "one",
        "declared_ram": 32 * MIB,
        "declared_vram": int(row.declared * MIB) or None,
        "retry_times": 50,
        "retry_on": ["out_of_memory", "cap_exceeded"],
        "retry_wait_s": 0,
    }


def kill_all(service: LiveService) -> None:
    """Kill -9 the supervisor and every process of the service, its broker too; jobs and their runners stay."""
    up = service.up()
    victims = [up["pid"], *(child["pid"] for child in up["children"].values() if child["pid"])]
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue  # it had just ended with its parent
    if service.process is not None:
        service.process.wait(15)


def unfinished(data: Path) -> int:
    """Return how many jobs have not ended."""
    with closing(sqlite3.connect(f"file:{data}/tidegate.sqlite3?mode=ro", uri=True, timeout=10)) as base:
        return int(base.execute("SELECT count(*) FROM placement_job WHERE state != 'finished'").fetchone()[0])


@contextmanager
def submitting(crowd: Crowd, rows: Sequence[Submission], folder: Path, zero: float) -> Iterator[threading.Thread]:
    """Submit each row when its time has come, in a thread."""
    wrong: list[BaseException] = []

    def all_of_them() -> None:
        try:
            for row in rows:
                time.sleep(max(0.0, zero + row.arrival - time.time()))
                crowd.submit(row.script, body_of(row, folder))
        except BaseException as error:
            wrong.append(error)
            raise

    thread = threading.Thread(target=all_of_them, daemon=True)
    thread.start()
    yield thread
    thread.join()
    if wrong:
        raise wrong[0]


def follow(
    rows: Sequence[Submission],
    devices: int,
    cap: float,
    turned: Mapping[str, float],
    *,
    broker: str = "redis",
    kill_at: float | None = None,
    name: str = "daemon",
) -> tuple[Course, Killed | None]:
    """Let the service follow the rows; ``kill_at``: kill -9 of all of it so many seconds after the first row came."""
    killed = None if kill_at is None else Killed()
    with (
        live_service(broker=broker, simulate=f"{devices}x{cap:g}MiB", knobs=turned) as service,
        tempfile.TemporaryDirectory(prefix="follow-") as place,
    ):
        folder = Path(place)
        lay_out(folder, rows)
        crowd = Crowd(service, sorted({row.script for row in rows}))
        watcher = next(iter(crowd.people.values()))
        until(lambda: _looked(service.data), 20, "the first look at the devices", 0.1)
        for _ in range(5):
            queue(watcher)  # the first pages meet caches that are empty
        zero = time.time() + 1.0 - rows[0].arrival
        with submitting(crowd, rows, folder, zero) as thread:
            if killed is not None and kill_at is not None:
                time.sleep(max(0.0, zero + rows[0].arrival + kill_at - time.time()))
                killed.before = queue(watcher)
                killed.at = time.time() - zero
                kill_all(service)
                killed.running = len(ledger.open_now((folder / "ran").read_text()))
                service.start()
                crowd.moved(service.address)
                killed.back = time.time() - zero
                killed.after = queue(watcher)
            until(lambda: not thread.is_alive(), rows[-1].arrival + PATIENCE, "all submissions", 0.2)
        until(lambda: unfinished(service.data) == 0, PATIENCE, "the end of all jobs", 0.2)
        course = ledger.course(name, rows, zero, service.data, (folder / "ran").read_text())
        return (course, killed)


def _looked(data: Path) -> bool:
    with closing(sqlite3.connect(f"file:{data}/tidegate.sqlite3?mode=ro", uri=True, timeout=10)) as base:
        return bool(base.execute("SELECT max(tick_clock) FROM placement_node").fetchone()[0])
