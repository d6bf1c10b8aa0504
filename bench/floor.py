"""What a start takes at least on this machine, now: two Celery hops, one commit, one bare runner."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from placement.runner.jsonfile import write_record
from placement.runner.launch import launch
from tests.wait import until

ROOT = Path(__file__).resolve().parent.parent
CELERY = (sys.executable, "-m", "celery", "-A", "bench.echo")
Once = Callable[[], float]
"""Does it once and returns how long it took, in ms."""


@contextmanager
def hops(broker: str) -> Iterator[Once]:
    """Keep two idle workers (solo, then prefork) and yield what sends one message through both."""
    with tempfile.TemporaryDirectory(prefix="echo-") as folder:
        out = Path(folder) / "out"
        out.touch()
        environment = {**os.environ, "ECHO_BROKER": broker, "ECHO_OUT": str(out), "PYTHONPATH": str(ROOT)}
        quiet = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel", "ERROR")
        pools = {"first": ("-P", "solo"), "second": ("-P", "prefork", "-c", "1")}
        workers = [
            subprocess.Popen(
                [*CELERY, "worker", "-n", name, "-Q", f"echo.{name}", *pool, *quiet],
                env=environment,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for name, pool in pools.items()
        ]
        os.environ["ECHO_BROKER"] = broker
        from bench.echo import first

        def once() -> float:
            before = len(out.read_text().splitlines())
            first.delay(time.time())
            until(lambda: len(out.read_text().splitlines()) > before, 60, "an echo", 0.001)
            return float(out.read_text().splitlines()[-1]) * 1000

        try:
            for _ in range(3):  # the first one waits for the workers to come up
                once()
            yield once
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait(20)


@contextmanager
def commits() -> Iterator[Once]:
    """Yield what commits one row to a database set up as the product's is."""
    with (
        tempfile.TemporaryDirectory(prefix="commit-") as folder,
        closing(sqlite3.connect(Path(folder) / "x.sqlite3", isolation_level=None)) as base,
    ):
        base.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE x (n)")

        def once() -> float:
            began = time.perf_counter()
            base.execute("BEGIN IMMEDIATE")
            base.execute("INSERT INTO x VALUES (1)")
            base.execute("COMMIT")
            return (time.perf_counter() - began) * 1000

        yield once


@contextmanager
def runners() -> Iterator[Once]:
    """Yield what launches a bare runner and tells the time to the first byte of its command."""
    with tempfile.TemporaryDirectory(prefix="runner-") as folder:
        number = 0

        def once() -> float:
            nonlocal number
            number += 1
            run_dir = Path(folder) / str(number)
            (run_dir / "control").mkdir(parents=True)
            spec = {"version": 1, "job_id": number, "attempt": 1, "node": "bench", "command": "echo $EPOCHREALTIME"}
            write_record(str(run_dir / "control" / "spec.json"), {**spec, "cwd": "/tmp", "env": {}, "account": None})
            began = time.time()
            launch(run_dir)
            log = run_dir / "stdout.log"
            until(lambda: log.exists() and log.read_text().endswith("\n"), 20, "the first byte", 0.001)
            until((run_dir / "control" / "exit.json").exists, 20, "the end", 0.005)
            return (float(log.read_text()) - began) * 1000

        yield once
