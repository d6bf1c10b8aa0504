"""What the acceptance tests of the loop share: people at a live service, its rows, its run directories."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.person import Person
from tests.service import REPOSITORY, LiveService, live_service
from tests.wait import until

MIB = 1 << 20
GIB = 1 << 30
SIMGPU = REPOSITORY / "calibration" / "probes" / "simgpu.py"
HOLDER = REPOSITORY / "tests" / "acceptance" / "holder.py"
QUICK = {
    "settle_seconds": 2.0,
    "floor_ram_mib": 256,
    "watch_ram_mib": 64,
    "watch_ram_share": 0.001,
    "grace_seconds": 1.0,
    "sweep_seconds": 0.5,
}
"""Knobs for a machine that others use too, and for people who do not want to wait."""


@contextmanager
def scene(
    broker: str, *, simulate: str = "2x24GiB", environment: Mapping[str, str] | None = None, **knobs: Any
) -> Iterator[tuple[LiveService, Person]]:
    """Run the service and log its first admin in."""
    turned = {**QUICK, **knobs}
    with live_service(broker=broker, simulate=simulate, knobs=turned, environment=environment) as service:
        try:
            yield service, admin(service)
        except BaseException:
            print(told(service))
            raise


def told(service: LiveService) -> str:
    """Return what a person who looks for the cause of a failure reads first."""
    lines = [service.said()]
    for log in sorted((service.data / "logs").glob("*.log")):
        lines.append(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-25:]))
    for table, columns in {
        "placement_node": "tick_clock, start_sent_clock, start_taken_clock, broker_away_since",
        "placement_cycle": "wanted, done, began_clock, cost_ms",
        "placement_job": "id, name, state, code, headline, dispatched_clock, attempt",
    }.items():
        lines += [f"--- {table}: {columns}", *map(str, rows(service, f"SELECT {columns} FROM {table}"))]
    return "\n".join(lines)


def admin(service: LiveService) -> Person:
    """Return the first admin, logged in by the link that `up` printed."""
    link = re.search(r"Login \(once\): (\S+)", service.said())
    assert link, service.said()
    return Person(service.address, link[1])


def python(script: Path, *arguments: object) -> str:
    """Return a command line that runs a script by this interpreter, without site packages: it starts quickly."""
    return shlex.join([sys.executable, "-S", str(script), *map(str, arguments)])


def simulated(shape: str, seconds: float, *more: object, ram: str = "1MiB") -> str:
    """Return a job that holds simulated device memory (and real RAM) and is busy."""
    return python(SIMGPU, "run", "--shape", shape, "--ram", ram, "--seconds", seconds, "--busy", 0.9, *more)


def rows(service: LiveService, sql: str, *values: object) -> list[tuple[Any, ...]]:
    """Return rows of the service's database, read beside it."""
    with closing(sqlite3.connect(f"file:{service.data}/tidegate.sqlite3?mode=ro", uri=True, timeout=10)) as database:
        return database.execute(sql, values).fetchall()


def device_uuids(service: LiveService) -> list[str]:
    """Return the devices of the service's node, in their order."""
    return [row[0] for row in rows(service, 'SELECT uuid FROM placement_device ORDER BY "index"')]


def live_leases(service: LiveService) -> int:
    """Return how many leases have not been released."""
    return int(rows(service, "SELECT count(*) FROM placement_lease WHERE released_at IS NULL")[0][0])


def end_all(service: LiveService, person: Person) -> None:
    """Cancel what waits or runs and see every lease released."""
    for (job_id,) in rows(service, "SELECT id FROM placement_job WHERE state != 'finished' ORDER BY id DESC"):
        person.call(f"/api/v1/jobs/{job_id}/cancel", {})
    left = "SELECT id, state FROM placement_job WHERE state != 'finished'"
    until(lambda: not rows(service, left), 60, "every job to end", 0.1)
    assert live_leases(service) == 0


def record(service: LiveService, job_id: int, name: str, attempt: int = 1) -> dict[str, Any]:
    """Return a record of a run directory: started, exit."""
    path = service.data / "runs" / f"{job_id}-{attempt}" / "control" / f"{name}.json"
    return dict(json.loads(path.read_text()))


def waits(person: Person, job_id: int, code: str, timeout: float = 30.0) -> dict[str, Any]:
    """Return the job once it waits and this code leads."""

    def there() -> dict[str, Any] | None:
        job = person.job(job_id)
        assert job["state"] == "queued", f"#{job_id} was to wait for {code}, but it is {job['state']}"
        return job if job["code"] == code else None

    return until(there, timeout, f"#{job_id} to wait with {code}", 0.1)


def check(job: dict[str, Any], code: str, pool: str = "") -> dict[str, Any]:
    """Return the failed check of this code in the leading candidate (of one pool, where it is given)."""
    found = [
        c
        for c in job["decision"]["candidates"][0]["checks"]
        if c["code"] == code and not c["ok"] and (not pool or c["pool"] == pool)
    ]
    assert found, f"no {code} in {job['decision']['candidates'][0]}"
    return dict(found[0])
