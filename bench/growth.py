"""What a long past costs: pages, submissions and ticks with a million finished jobs, beside a new service.

    python -m bench.growth --jobs 1000000 [--database sqlite|postgresql] [--days 30] [--rounds 30] [--json]

Two services are made, each in a process and a database of its own, with the same queue: four jobs that run, one on
each simulated device, and twenty that wait. One has so many finished jobs, each with a decision, two leases and what
it taught (5,000 keys), and 30 days of readings of four pools. The other is two hours old: 1,020 finished jobs, so
that its pages show as many lines, and the same past runs of the queue's own keys, so that both decide the same. Both
are asked in turn, and before each page something is committed, so that none answers with what it kept.
Room on the disk: about 10 KB a job below --folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests import servers

KEYS = 5000
FEW = 1020  # finished jobs of the new service: 51 of them failed, a full page
PAGE_OF = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}


class Aged:
    """A service in a child (bench.aged) and the pipe to it."""

    def __init__(self, stack: ExitStack, folder: Path, url: str, jobs: int, days: float, keys: int) -> None:
        folder.mkdir()
        script = folder.parent / "train.py"
        script.write_text("import sys, time\ntime.sleep(float(sys.argv[1]))\n")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
        environment |= {
            "DJANGO_SETTINGS_MODULE": "scheduler_site.settings",
            "TIDEGATE_DATA": str(folder),
            "TIDEGATE_DATABASE_URL": url,
            "TIDEGATE_NODE": "bench",
            "TIDEGATE_SIMULATE": "4x24GiB",
            "TIDEGATE_ALLOWED_HOSTS": "testserver",
            "TIDEGATE_TEST_KNOBS": json.dumps({"floor_ram_mib": 256, "watch_ram_mib": 1, "watch_ram_share": 0.0}),
        }
        self.child = subprocess.Popen(
            [sys.executable, "-m", "bench.aged", str(jobs), str(days), str(keys), str(script)],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        stack.callback(self._close)

    def told(self) -> Any:
        """Return its next answer."""
        assert self.child.stdout is not None
        line = self.child.stdout.readline()
        if not line:
            raise SystemExit(f"a service of the bench ended with code {self.child.wait()}; what it said stands above")
        return json.loads(line)

    def ask(self, what: str) -> float:
        """Return the milliseconds that something took."""
        assert self.child.stdin is not None
        print(what, file=self.child.stdin, flush=True)
        return float(self.told())

    def _close(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.child.wait(60)


def urls(stack: ExitStack, database: str, folder: Path) -> tuple[str, str]:
    """Return the addresses of two empty databases."""
    if database == "sqlite":
        return f"sqlite://{folder}/new.sqlite3", f"sqlite://{folder}/old.sqlite3"
    old = stack.enter_context(servers.postgres())
    subprocess.run(
        ["psql", "-h", old.partition("host=")[2], "-U", "postgres", "-c", "CREATE DATABASE fresh"],
        check=True, capture_output=True,
    )  # fmt: skip
    return old.replace("/tidegate?", "/fresh?"), old


def run(jobs: int, database: str, days: float, rounds: int, folder: Path) -> dict[str, Any]:
    """Return medians in ms by what was asked, (new, old), and the sizes."""
    with ExitStack() as stack:
        new_url, old_url = urls(stack, database, folder)
        old = Aged(stack, folder / "old", old_url, jobs, days, KEYS)
        told = {"old": old.told()}
        new = Aged(stack, folder / "new", new_url, FEW, 2 / 24, 24)
        told["new"] = new.told()
        times: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in told["old"]["calls"]}
        for number in range(-3, rounds):
            for name, (news, olds) in times.items():
                asked = [(new, news), (old, olds)]
                for side, kept in asked if number % 2 else asked[::-1]:
                    took = side.ask(name)
                    if number >= 0:
                        kept.append(took)
    return {
        "jobs": jobs,
        "database": PAGE_OF[database],
        "rounds": rounds,
        "load": os.getloadavg()[0],
        "filled_s": told["old"]["filled"],
        "sizes": {side: said["sizes"] for side, said in told.items()},
        "ms": {name: (statistics.median(news), statistics.median(olds)) for name, (news, olds) in times.items()},
    }


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--database", choices=list(PAGE_OF), default="sqlite")
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--folder", default=tempfile.gettempdir())
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tidegate-growth-", dir=options.folder))
    try:
        found = run(options.jobs, options.database, options.days, options.rounds, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        print(json.dumps(found))
        return
    old, new = found["sizes"]["old"], found["sizes"]["new"]
    print(f"{found['database']}, {found['rounds']} rounds in turn, load {found['load']:.1f} on {os.cpu_count()} cores")
    print(f"old: {old['bytes'] / 2**30:.1f} GiB, filled in {found['filled_s']:.0f} s: " + _rows(old))
    print(f"new: {new['bytes'] / 2**20:.1f} MiB: " + _rows(new))
    print(f"{'ms, medians':32} {'new':>8} {'old':>8}   old/new")
    for name, (fresh, aged) in found["ms"].items():
        print(f"{name:32} {fresh:8.1f} {aged:8.1f} {aged / fresh:9.2f}")


def _rows(sizes: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sizes.items() if name != "bytes")


if __name__ == "__main__":
    main()
