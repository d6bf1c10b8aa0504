"""Cards whose memory a test hands out to real processes, and what a test asks of the service about its jobs."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tests.nvml_stub import Device, State
from tests.person import Person
from tests.service import LiveService
from tests.wait import until

GIB = 1 << 30
MIB = 1 << 20


class Cards:
    """The stub driver's cards in the order of its list; each change is on record at once."""

    def __init__(self, state: State, *uuids: str, total: int = 24 * GIB) -> None:
        self.state, self.total, self.order = state, total, list(uuids)
        self.held: dict[str, dict[int, int | None]] = {uuid: {} for uuid in uuids}
        self.base: dict[str, int] = dict.fromkeys(uuids, 0)  # used by nobody that the driver names
        self.reserved = 0
        self.fail: dict[str, int] = {}
        self.options: dict[str, Any] = {}
        self.write()

    def hold(self, uuid: str, pid: int, size: int | None) -> None:
        """Let a process hold bytes of a card; None: the driver names it without a size."""
        self.held[uuid][pid] = size
        self.write()

    def clear(self) -> None:
        """Take everything back: nobody holds anything, nothing fails."""
        for uuid in self.held:
            self.held[uuid], self.base[uuid] = {}, 0
        self.reserved, self.fail, self.options = 0, {}, {}
        self.order = list(self.held)
        self.write()

    def write(self) -> None:
        """Put the machine on disk."""
        self.state.write(
            [
                Device(
                    uuid,
                    total=self.total,
                    used=self.base[uuid] + sum(size or 0 for size in self.held[uuid].values()),
                    reserved=self.reserved,
                    compute=list(self.held[uuid].items()),
                    fail=self.fail.get(uuid, 0),
                )
                for uuid in self.order
            ],
            **self.options,
        )


class Desk:
    """One person's jobs on one service."""

    def __init__(self, service: LiveService) -> None:
        self.service = service
        link = re.search(r"/login/link/\S+", service.said())
        assert link, service.said()
        self.person = Person(service.address, link[0])
        self.submitted: list[int] = []

    def submit(self, command: str, *, gib: float | None, **more: Any) -> int:
        """Submit a job that declares so much device memory (None: nothing) and a little main memory."""
        fields: dict[str, Any] = {"gpu": "one", "declared_ram": "64 MiB", **more}
        if gib is not None:
            fields["declared_vram"] = int(gib * GIB)
        self.submitted.append(self.person.submit(command, **fields))
        return self.submitted[-1]

    def running(self, job: int, timeout: float = 40.0) -> int:
        """Return the process id of a job once it runs."""
        self.person.wait_for(job, "running", timeout)
        return self.pid(job)

    def pid(self, job: int) -> int:
        """Return the process id of a job's leader."""
        records = sorted(self.service.data.glob(f"runs/{job}-*/control/started.json"))
        return int(json.loads(records[-1].read_text())["child"]["pid"])

    def first_line(self, job: int) -> str:
        """Return the first line that a job prints, once it is there: a job that runs has not said anything yet."""

        def whole() -> list[str]:
            said = "".join(path.read_text() for path in sorted(self.service.data.glob(f"runs/{job}-*/stdout.log")))
            return said.splitlines() if "\n" in said else []

        return until(whole, 20, f"the first line of #{job}")[0]

    def waits(self, job: int, pattern: str, timeout: float = 30.0) -> dict[str, Any]:
        """Return the job once its reason reads so; fail as soon as it does not wait any more."""

        def reason() -> dict[str, Any] | None:
            seen = self.person.job(job)
            assert seen["state"] == "queued", f"#{job} is {seen['state']} instead of waiting: {seen['headline']}"
            return seen if re.search(pattern, seen["headline"]) else None

        try:
            return until(reason, timeout, f"#{job} to wait because {pattern!r}", 0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}; its reason: {self.person.job(job)['headline']!r}") from None

    def pool(self, pool: str) -> dict[str, Any]:
        """Return a pool's newest figures as the API shows them."""
        pools = self.person.call("/api/v1/queue")["pools"]
        return next(p for p in pools if p["pool"] == pool)

    def seen(self, pool: str, **figures: Any) -> dict[str, Any]:
        """Return a pool once the service has read these figures."""

        def there() -> dict[str, Any] | None:
            now = self.pool(pool)
            return now if all(now[name] == value for name, value in figures.items()) else None

        return until(there, 20, f"{pool} with {figures}", 0.1)

    def read_again(self, pool: str, times: int) -> None:
        """Wait until a pool was read so many times more: what is seen once is not learned."""
        seen: set[float] = set()

        def enough() -> bool:
            with closing(sqlite3.connect(f"file:{self.service.data}/tidegate.sqlite3?mode=ro", uri=True)) as base:
                seen.update(
                    row[0] for row in base.execute("SELECT read_at FROM calibration_poolnow WHERE pool = ?", (pool,))
                )
            return len(seen) > times

        until(enough, 20, f"{times} more readings of {pool}", 0.1)

    def flagged(self, job: int, pattern: str, timeout: float = 30.0) -> str:
        """Return a job's flag that reads so, once it is there."""

        def flag() -> str | None:
            return next((f for f in self.person.job(job)["flags"] if re.search(pattern, f)), None)

        return until(flag, timeout, f"#{job} to be flagged {pattern!r}", 0.1)

    def sediment(self, job: int) -> dict[str, Any] | None:
        """Return what was kept of an ended run, None where nothing was."""
        with closing(sqlite3.connect(f"file:{self.service.data}/tidegate.sqlite3?mode=ro", uri=True)) as base:
            base.row_factory = sqlite3.Row
            row = base.execute("SELECT * FROM calibration_sediment WHERE owner = ?", (f"job:{job}",)).fetchone()
        if row is None:
            return None
        told = dict(row)
        return {**told, **{n: json.loads(told[n]) for n in ("peaks", "charge", "cap", "next_charge", "samples")}}

    def jobs_stored(self) -> int:
        """Return how many jobs the database holds."""
        with closing(sqlite3.connect(f"file:{self.service.data}/tidegate.sqlite3?mode=ro", uri=True)) as base:
            return int(base.execute("SELECT count(*) FROM placement_job").fetchone()[0])

    def cancel_all(self) -> None:
        """Cancel what this desk submitted and wait until it has ended."""
        left = [job for job in self.submitted if self.person.job(job)["state"] != "finished"]
        for job in left:
            self.person.call(f"/api/v1/jobs/{job}/cancel", {})
        for job in left:
            self.person.wait_for(job, "finished", 30)
        self.submitted.clear()


@contextmanager
def stranger() -> Iterator[int]:
    """Run a process that is nobody's job and yield its id."""
    process = subprocess.Popen(["sleep", "600"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def until_told(path: Path) -> str:
    """Return a command that runs until a file appears, then ends well."""
    return f"until [ -e {path} ]; do sleep 0.1; done"


def during(seconds: float, check: Any) -> None:
    """Ask a check again and again for so long; it raises where something is wrong."""
    deadline = time.monotonic() + seconds
    until(lambda: (check(), time.monotonic() > deadline)[1], seconds + 15, "the time to pass", 0.2)
