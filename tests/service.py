"""The real service in a directory of its own, for tests that want real processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.wait import until

REPOSITORY = Path(__file__).resolve().parent.parent
UP_WITHIN = 90.0
IN_TESTS, DATABASE = "TIDEGATE_TEST_DATA", "TIDEGATE_DATABASE_URL"


@dataclass
class LiveService:
    """One running `up`. Its output is kept in `output`, its processes' logs in `data`/logs."""

    data: Path
    environment: dict[str, str]
    arguments: list[str]
    process: subprocess.Popen[bytes] | None = None
    address: str = field(default="", init=False)
    _said_before: int = field(default=0, init=False)

    def start(self) -> None:
        """Start and wait until the pages answer and every process is there."""
        self._said_before = len(self.said())
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "scheduler_site", "up", *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.environment,
                cwd=REPOSITORY,
            )
        until(self._is_up, UP_WITHIN, f"the service, whose output is in {self.output}", 0.1)
        self.address = self.up()["address"]

    @property
    def output(self) -> Path:
        return self.data.with_name(self.data.name + ".output")

    def said(self) -> str:
        return self.output.read_text() if self.output.exists() else ""

    def up(self) -> dict[str, Any]:
        """Return up.json: pid, address, since, children by name with pid and restarts."""
        try:
            return json.loads((self.data / "up.json").read_text())  # type: ignore[no-any-return]
        except FileNotFoundError:
            return {}

    def pid(self, name: str) -> int:
        """Return the process id of the child whose name begins so: broker, tick, start, beat, web."""
        children = self.up()["children"]
        (pid,) = [child["pid"] for key, child in children.items() if key.partition("@")[0] == name]
        return int(pid)

    def get(self, path: str, timeout: float = 20) -> tuple[int, str]:
        """Return status and text of a page, without a login."""
        with urllib.request.urlopen(self.address + path, timeout=timeout) as answer:
            return answer.status, answer.read().decode()

    def manage(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a Django command on this service's data, with its broker, and return its result."""
        socket = self.data / "broker" / "redis.sock"
        broker = f"redis+socket://{socket}?virtual_host=0" if socket.exists() else f"safefs://{self.data}/broker"
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            env={"TIDEGATE_BROKER_URL": broker, **self.environment},
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=60,
            **options,
        )

    def stop(self, timeout: float = 20) -> int:
        """Ask it to stop and return its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def end(self) -> None:
        """Cancel what waits or runs, then stop at once: two signals hurry the supervisor."""
        if self._has_jobs():
            self.manage("cancel_all", check=False)
        if self.process is None or self.process.poll() is not None:
            return
        try:
            self.process.send_signal(signal.SIGINT)
            self.stop()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _has_jobs(self) -> bool:
        """Return whether a job may wait or run; starting Django only to learn that none does takes seconds."""
        file = self.data / "tidegate.sqlite3"
        try:
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=10)) as database:
                return bool(
                    database.execute("SELECT 1 FROM placement_job WHERE state != 'finished' LIMIT 1").fetchone()
                )
        except sqlite3.Error:
            return True  # it is on another server, or was never made

    def _is_up(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise AssertionError(f"up ended with {self.process.returncode}: {self.said()}")
        return "Tidegate is up" in self.said()[self._said_before :]


@cache
def _migrated() -> Path:
    """Return an SQLite database that `up` finds nothing to do in; each process of a test run makes its own."""
    folder = Path(os.environ[IN_TESTS]) / f"migrated-{os.getpid()}"
    folder.mkdir(mode=0o700)
    surroundings = {key: value for key, value in os.environ.items() if not key.startswith(("TIDEGATE_", "DJANGO_"))}
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, env={**surroundings, "TIDEGATE_DATA": str(folder)}, cwd=REPOSITORY, check=True)
    return folder / "tidegate.sqlite3"


@contextmanager
def live_service(
    *,
    broker: str = "files",
    simulate: str = "2x24GiB",
    demo: bool = False,
    knobs: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    data: Path | None = None,
    migrated: bool = True,
) -> Iterator[LiveService]:
    """Run the service on a free port; afterwards cancel its jobs and end what was started here, nothing else.

    broker: "redis", "files", or "" for whatever is there. simulate: "" for the machine's own devices.
    migrated: find a database with all its tables, and nothing in them, which spares a start seconds.
    """
    with tempfile.TemporaryDirectory(prefix="tidegate-live-", ignore_cleanup_errors=True) as folder:
        where = data or Path(folder) / "data"
        surroundings = {key: value for key, value in os.environ.items() if not key.startswith(("TIDEGATE_", "DJANGO_"))}
        surroundings |= {"TIDEGATE_DATA": str(where), "TIDEGATE_NODE": "testnode"}
        if simulate:
            surroundings["TIDEGATE_SIMULATE"] = simulate
        if knobs:
            surroundings["TIDEGATE_TEST_KNOBS"] = json.dumps(dict(knobs))
        arguments = ["--data", str(where), "--port", "0"]
        arguments += ["--broker", broker] if broker else []
        arguments += ["--simulate", simulate] if simulate else []
        arguments += ["--demo"] if demo else []
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        if migrated and data is None and IN_TESTS in os.environ and DATABASE not in (environment or {}):
            shutil.copy(_migrated(), where)
        service = LiveService(data=where, environment=surroundings | dict(environment or {}), arguments=arguments)
        try:
            service.start()
            yield service
        finally:
            service.end()
