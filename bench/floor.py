"""What a start takes at least on this machine, now: two Celery hops, one commit, one bare runner."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from placement.runner.jsonfile import write_record
from placement.runner.launch import launch
from tests.wait import until

ROOT = Path(__file__).resolve().parent.parent
CELERY = (sys.executable, "-m", "celery", "-A", "bench.echo")
Milliseconds = list[float]


def hops(broker: str, count: int) -> Milliseconds:
    """Return how long each of ``count`` messages took through two idle workers (solo, then prefork)."""
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

        try:
            for number in range(count + 3):  # the first ones wait for the workers to come up
                first.delay(time.time())
                until(lambda number=number: len(out.read_text().splitlines()) > number, 60, "an echo", 0.001)
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait(20)
        return [float(line) * 1000 for line in out.read_text().splitlines()[3:]]


def commits(count: int) -> Milliseconds:
    """Return how long each of ``count`` transactions of one row took on a database set up as the product's is."""
    taken = []
    with (
        tempfile.TemporaryDirectory(prefix="commit-") as folder,
        closing(sqlite3.connect(Path(folder) / "x.sqlite3", isolation_level=None)) as base,
    ):
        base.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE x (n)")
        for number in range(count):
            began = time.perf_counter()
            base.execute("BEGIN IMMEDIATE")
            base.execute("INSERT INTO x VALUES (?)", (number,))
            base.execute("COMMIT")
            taken.append((time.perf_counter() - began) * 1000)
    return taken


def runners(count: int) -> Milliseconds:
    """Return how long each of ``count`` bare runners took from the launch to the first byte of its command."""
    taken = []
    with tempfile.TemporaryDirectory(prefix="runner-") as folder:
        for number in range(count):
            run_dir = Path(folder) / str(number)
            (run_dir / "control").mkdir(parents=True)
            spec = {"version": 1, "job_id": number, "attempt": 1, "node": "bench", "command": "echo $EPOCHREALTIME"}
            write_record(str(run_dir / "control" / "spec.json"), {**spec, "cwd": "/tmp", "env": {}, "account": None})
            began = time.time()
            launch(run_dir)
            log = run_dir / "stdout.log"
            until(lambda log=log: log.exists() and log.read_text().endswith("\n"), 20, "the first byte", 0.001)
            taken.append((float(log.read_text()) - began) * 1000)
            until(lambda run_dir=run_dir: (run_dir / "control" / "exit.json").exists(), 20, "the end", 0.001)
    return taken
