"""What Tidegate adds to a job beside what it is for: its start, its runner's memory, and CPU per hour of run.

    python -m bench.overhead [--starts 40] [--runners 10] [--seconds 30] [--json]

Start: from the call to the command's first byte, a bare shell in turn with a runner from the nursery (as jobs are
started), the same with a control group of the kind that this machine has, and a runner by itself (as they are where
the nursery cannot). Memory: of runners whose jobs run, RSS as `ps` shows
it, PSS, and what no other process shares; beside a Python of the same version that only waits. CPU: what the kernel
says a runner used (schedstat) over a span, for jobs that sleep, write a line each 10 ms, start a process each 50 ms.
The watchdog: CPU of one glance at sleeping processes; small ones, whose exact sizes cost the least.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.latency import quantile
from calibration.probes.choose import Instrument
from calibration.probes.procfs import ProcWalk
from calibration.probes.pss import PssReader
from placement.runner.containment import Plan
from placement.runner.identity import Identity, alive, identify, read_boot_id
from placement.runner.jsonfile import write_record
from placement.runner.ladder import choose
from placement.runner.launch import LaunchResult, launch
from placement.runner.record import read_started
from placement.runner.status import Phase, look
from placement.runner.stop_request import request_stop
from placement.runner.warm import Nursery
from tests.wait import until

GOAL_RSS_MIB = 12.0
LIMIT = 1 << 30  # bytes of main memory of a job in a control group here
FIRST = "printf '%s\\n' $EPOCHREALTIME > first; mv first first.done"
LOADS = {
    "sleeps": "sleep 600",
    "writes a line each 10 ms": "while ((SECONDS < 600)); do echo a line that says how far it is; sleep 0.01; done",
    "starts a process each 50 ms": "while ((SECONDS < 600)); do /bin/true; sleep 0.05; done",
}
Launch = Callable[[Path], LaunchResult]


class Jobs:
    """Run directories in one folder, and runners in them that are ended with it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self._dirs: list[Path] = []

    def made(self, command: str, plan: Plan | None = None) -> Path:
        """Return a run directory for this command; it runs in a directory of its own beside it.

        With a plan in a control group with a limit, as the service's jobs do.
        """
        self._count += 1
        run_dir, home = self._folder / str(self._count), self._folder / f"home{self._count}"
        (run_dir / "control").mkdir(parents=True)
        home.mkdir()
        spec = {"version": 1, "job_id": self._count, "attempt": 1, "node": "bench", "command": command, "account": None}
        more = {"cwd": str(home), "env": {"PATH": os.environ["PATH"]}, "grace_s": 1.0, "log_limit_bytes": 64 << 20}
        if plan is not None:
            limited = plan._replace(name=f"tidegate-bench-{os.getpid()}-{self._count}", limit=LIMIT)
            more["containment"] = limited._asdict()
        write_record(str(run_dir / "control" / "spec.json"), {**spec, **more})
        self._dirs.append(run_dir)
        return run_dir

    def runner(self, run_dir: Path) -> int:
        """Return the runner's pid."""
        return until(lambda: read_started(run_dir), 20, "a start").runner.pid

    def end(self) -> None:
        """Stop all and wait until they have."""
        for run_dir in self._dirs:
            request_stop(run_dir, "cancel", 0.0)
        for run_dir in self._dirs:
            until(lambda at=run_dir: _over(at), 20, f"the end of {run_dir}")
        self._dirs.clear()


def _over(run_dir: Path) -> bool:
    """Return whether a run has ended and its runner has written its last file."""
    run = read_started(run_dir)
    return run is None or (look(run_dir).phase is Phase.EXITED and not alive(run.runner))


@contextmanager
def jobs() -> Iterator[Jobs]:
    """Yield a place for jobs of this bench; none is left behind."""
    with tempfile.TemporaryDirectory(prefix="overhead-") as folder:
        made = Jobs(Path(folder))
        try:
            yield made
        finally:
            made.end()


def bare(folder: Path) -> float:
    """Return the ms from a Popen to the first byte of the same command."""
    with tempfile.TemporaryDirectory(dir=folder) as home:
        began = time.time()
        process = subprocess.Popen(["/bin/bash", "-c", FIRST], cwd=home, stdin=subprocess.DEVNULL)
        process.wait()
        return (float((Path(home) / "first.done").read_text()) - began) * 1000


def started(made: Jobs, start: Launch, plan: Plan | None = None) -> float:
    """Return the ms from a launch to the first byte of the command."""
    run_dir = made.made(FIRST, plan)
    first = run_dir.parent / f"home{run_dir.name}" / "first.done"
    began = time.time()
    result = start(run_dir)
    assert result.ok, result.message
    until(first.exists, 20, "the first byte", 0.001)
    until((run_dir / "control" / "exit.json").exists, 20, "the end", 0.005)
    return (float(first.read_text()) - began) * 1000


def starts(count: int) -> dict[str, list[float]]:
    """Return ms of each start, all kinds in turn so that what loads the machine loads all alike."""
    nursery, plan = Nursery(), choose().plan
    found: dict[str, list[float]] = {
        "bare command": [],
        "runner from the nursery": [],
        f"… in a group ({plan.kind})": [],
        "runner by itself": [],
    }
    try:
        with jobs() as made, tempfile.TemporaryDirectory(prefix="bare-") as folder:
            for number in range(-3, count):
                warm = (started(made, nursery.launch), started(made, nursery.launch, plan))
                row = (bare(Path(folder)), *warm, started(made, launch))
                if number >= 0:
                    for kind, ms in zip(found, row, strict=True):
                        found[kind].append(ms)
    finally:
        nursery.close()
    return found


def sizes(pid: int) -> dict[str, float]:
    """Return RSS, PSS and unshared memory of a process in MiB."""
    read: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, _, rest = line.partition(":")
        read[name] = int(rest.split()[0])
    own = read["Private_Clean"] + read["Private_Dirty"]
    return {"RSS": read["Rss"] / 1024, "PSS": read["Pss"] / 1024, "its own": own / 1024}


def memory(count: int) -> dict[str, dict[str, float]]:
    """Return the middle sizes of so many runners at once, and those of a Python that waits."""
    nursery = Nursery()
    idle = subprocess.Popen([sys.executable, "-S", "-E", "-s", "-c", "import signal; signal.pause()"])
    try:
        with jobs() as made:
            kinds: dict[str, list[dict[str, float]]] = {"runner from the nursery": [], "runner by itself": []}
            starters: tuple[Launch, ...] = (nursery.launch, launch)
            pids: dict[str, list[int]] = {kind: [] for kind in kinds}
            for kind, start in zip(kinds, starters, strict=True):
                for _ in range(count):
                    run_dir = made.made("sleep 600")
                    assert start(run_dir).ok
                    pids[kind].append(made.runner(run_dir))
            time.sleep(3.0)  # each has looked about at least twice
            for kind, all_ in pids.items():
                kinds[kind] = [sizes(pid) for pid in all_]
            middle = {
                kind: {name: statistics.median(row[name] for row in found) for name in found[0]}
                for kind, found in kinds.items()
            }
            return {**middle, "Python that waits": sizes(idle.pid)}
    finally:
        idle.send_signal(signal.SIGKILL)
        idle.wait()
        nursery.close()


def used(pid: int) -> float:
    """Return the seconds of CPU that a process has used, by the kernel's nanoseconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def cpu(seconds: float) -> dict[str, float]:
    """Return the seconds of CPU that a runner takes in an hour of its job, by what the job does."""
    nursery = Nursery()
    try:
        with jobs() as made:
            pids: dict[str, int] = {}
            for name, command in LOADS.items():
                run_dir = made.made(command)
                assert nursery.launch(run_dir).ok
                pids[name] = made.runner(run_dir)
            time.sleep(2.0)
            began, before = time.monotonic(), {name: used(pid) for name, pid in pids.items()}
            time.sleep(seconds)
            span = time.monotonic() - began
            return {name: (used(pid) - before[name]) / span * 3600 for name, pid in pids.items()}
    finally:
        nursery.close()


def glances(counts: tuple[int, ...] = (1, 64, 256)) -> dict[str, dict[str, float]]:
    """Return ms of CPU for one glance of the watchdog at so many processes near a cap, and for their exact sizes."""
    boot = read_boot_id()
    found: dict[str, dict[str, float]] = {}
    sleepers = [subprocess.Popen(["sleep", "600"]) for _ in range(max(counts))]
    try:
        reader, instrument = PssReader(budget_ms=1e9), Instrument("bench", nvml=False)
        known = [one for sleeper in sleepers if (one := identify(sleeper.pid, boot))]
        reader.apply(ProcWalk().walk(), [one.pid for one in known])
        for count in counts:
            some = known[:count]

            def glance(some: list[Identity] = some) -> object:
                return instrument.ram(), reader.now([one.pid for one in some if alive(one)])

            def exact(some: list[Identity] = some) -> object:
                return [Path(f"/proc/{one.pid}/smaps_rollup").read_bytes() for one in some]

            found[f"{count} processes"] = {"glance": _cost(glance), "exact": _cost(exact)}
        return found
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()


def _cost(once: Callable[[], object]) -> float:
    """Return the middle ms of CPU of 21 calls."""
    seen = []
    for _ in range(21):
        began = time.process_time()
        once()
        seen.append((time.process_time() - began) * 1000)
    return statistics.median(seen)


def show(found: dict[str, dict[str, dict[str, float]]]) -> None:
    """Print the tables with their ratios."""
    table = found["start"]
    least = table["bare command"]["p50"]
    print("start to first byte, ms         p50     p95   x the bare command")
    for kind, row in table.items():
        print(f"  {kind:26} {row['p50']:7.1f} {row['p95']:7.1f} {row['p50'] / least:8.2f}")
    print("memory, MiB                     RSS     PSS   its own   RSS x a Python that waits")
    idle = found["memory"]["Python that waits"]["RSS"]
    for kind, row in found["memory"].items():
        ratio = row["RSS"] / idle
        print(f"  {kind:26} {row['RSS']:7.1f} {row['PSS']:7.1f} {row['its own']:9.1f} {ratio:8.2f}")
    most = found["memory"]["runner from the nursery"]["RSS"]
    print(f"  goal: at most {GOAL_RSS_MIB:g} MiB of RSS: {'met' if most <= GOAL_RSS_MIB else 'missed'} with {most:.1f}")
    print("the watchdog near a cap, ms of CPU    a glance, four a second   exact sizes")
    for name, row in found["watchdog"].items():
        print(f"  {name:30} {row['glance']:18.2f} {row['exact']:17.2f}")
    print("CPU of the runner, s in an hour of a job that …   share of one core")
    for name, row in found["cpu"].items():
        print(f"  {name:30} {row['s/h']:7.2f} {row['s/h'] / 36:20.3f} %")


def main() -> None:
    """Print what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=40)
    parser.add_argument("--runners", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: dict[str, dict[str, dict[str, float]]] = {
        "start": {
            kind: {"p50": quantile(ms, 0.5), "p95": quantile(ms, 0.95)} for kind, ms in starts(options.starts).items()
        },
        "memory": memory(options.runners),
        "watchdog": glances(),
        "cpu": {name: {"s/h": seconds} for name, seconds in cpu(options.seconds).items()},
    }
    if options.json:
        print(json.dumps(found))
        return
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    show(found)


if __name__ == "__main__":
    main()
