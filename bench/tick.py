"""What one look at the process table costs, beside the least possible and beside psutil.

    python -m bench.tick --procs 200,1000,5000 [--rounds 9] [--owned 20] [--json]

For each count so many sleeping processes are started (and ended here, by pid). Then three walks are timed in
turn, so that a busy machine slows all of them: ours (user, name, parent, group, session, start, size), a raw
open + read + parse of /proc/N/stat ("raw"), the same from files that are kept open ("kept"), and psutil. "tick" is the
whole reading: ours, exact sizes of the owned
processes as they come due, the machine's limits.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import time
from collections.abc import Callable

from calibration.probes import reference
from calibration.probes.choose import Instrument
from calibration.probes.procfs import ProcWalk

PAGE = os.sysconf("SC_PAGE_SIZE")


def raw_walk() -> dict[int, tuple[int, int]]:
    """Return (parent, resident bytes) by pid with nothing kept and nothing else read: the floor."""
    found: dict[int, tuple[int, int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                descriptor = os.open(f"/proc/{entry}/stat", os.O_RDONLY)
                try:
                    raw = os.read(descriptor, 1024)
                finally:
                    os.close(descriptor)
            except OSError:
                continue
            fields = raw[raw.rindex(b")") + 2 :].split()
            found[int(entry)] = (int(fields[1]), int(fields[21]) * PAGE)
    return found


class Kept:
    """The raw walk with each process's file kept open: the least that any walk can take."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}

    def walk(self) -> dict[int, tuple[int, int]]:
        """Return (parent, resident bytes) by pid."""
        found: dict[int, tuple[int, int]] = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    descriptor = self.files.get(entry)
                    if descriptor is None:
                        descriptor = self.files[entry] = os.open(f"/proc/{entry}/stat", os.O_RDONLY)
                    raw = os.pread(descriptor, 1024, 0)
                except OSError:
                    continue
                fields = raw[raw.rindex(b")") + 2 :].split()
                found[int(entry)] = (int(fields[1]), int(fields[21]) * PAGE)
        return found

    def close(self) -> None:
        """Let go of all files."""
        for descriptor in self.files.values():
            os.close(descriptor)


def sleepers(count: int) -> list[int]:
    """Start processes that only wait; return their pids."""
    pids = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        pids.append(pid)
    return pids


def end(pids: list[int]) -> None:
    """End and collect them."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)


def timed(call: Callable[[], object]) -> float:
    """Return the milliseconds of one call."""
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def measure(count: int, rounds: int, owned: int) -> dict[str, float]:
    """Return medians in ms and ratios with ``count`` extra processes."""
    pids, kept = sleepers(count), Kept()
    try:
        ours = ProcWalk()
        instrument = Instrument("bench", nvml=False)
        calls: dict[str, Callable[[], object]] = {
            "ours": ours.walk,
            "raw": raw_walk,
            "kept": kept.walk,
            "psutil": reference.walk,
            "tick": lambda: instrument.read(pids[:owned]),
        }
        for _ in range(3):  # the first walks read every user and are not what each second costs
            for call in calls.values():
                call()
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(rounds):
            for name, call in calls.items():
                times[name].append(timed(call))
        result = {name: statistics.median(values) for name, values in times.items()}
        result["processes"] = len(os.listdir("/proc"))
    finally:
        kept.close()
        end(pids)
    result["ours/kept"] = result["ours"] / result["kept"]
    result["ours/raw"] = result["ours"] / result["raw"]
    result["psutil/ours"] = result["psutil"] / result["ours"]
    return result


def main() -> None:
    """Print one row a count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--procs", default="200,1000,5000")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--owned", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = {int(n): measure(int(n), options.rounds, options.owned) for n in options.procs.split(",")}
    if options.json:
        print(json.dumps(rows))
        return
    print("extra   ours ms   kept ms    raw ms   psutil ms   tick ms   ours/kept   ours/raw   psutil/ours")
    for count, row in rows.items():
        print(
            f"{count:5} {row['ours']:9.2f} {row['kept']:9.2f} {row['raw']:9.2f} {row['psutil']:11.2f} "
            f"{row['tick']:9.2f} {row['ours/kept']:11.2f} {row['ours/raw']:10.2f} {row['psutil/ours']:13.1f}"
        )


if __name__ == "__main__":
    main()
