"""Decisions of the allocator per second, and what a lease takes of memory, beside jayrun 0.3.0.

``python -m bench.allocator --rounds 5``. Both get the same stream of requests, by turns: each is decided, a grant is
booked, and the oldest is given back when more than three quarters of the machine would be held. Seconds are CPU time
of the process, medians of the rounds; a line says so where the two decided differently. jayrun is installed once, into
an environment of its own below ``--scratch``; where it cannot be had only our figures are shown.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
import time
import tracemalloc
import venv
from collections import deque
from pathlib import Path
from typing import Any

from placement.domain.leasing import leases
from placement.domain.leasing.allocator import Granted, Slot
from placement.domain.leasing.ledger import Book, opened
from placement.domain.world.asks import Ask
from placement.domain.world.devices import Backend, Kind

PEER = "jayrun==0.3.0"
GB = 10**9
CARD = 24
DECISIONS = {1: 2000, 8: 2000, 64: 1000, 512: 200}
SCRATCH = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidegate" / "bench-allocator"
Stream = list[tuple[int, int]]


def main() -> None:
    """Print one line per number of devices and of members, then what a lease takes."""
    parser = argparse.ArgumentParser(prog="python -m bench.allocator", description=__doc__)
    parser.add_argument("--devices", default="1,8,64,512")
    parser.add_argument("--members", default="1,2,4,8,mixed", help="devices per request; mixed: 1 to 8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scratch", type=Path, default=SCRATCH, help="where jayrun's environment is, or is made")
    parser.add_argument("--alone", action="store_true", help="only our own figures")
    args = parser.parse_args()
    python = None if args.alone else environment(args.scratch)
    print("devices members granted | ours/s  us each | jayrun/s  us each | times as many")
    for devices in [int(word) for word in args.devices.split(",")]:
        for members in args.members.split(","):
            if members == "mixed" or int(members) <= devices:
                line(devices, members, args.rounds, python)
    memory(python)


def line(devices: int, members: str, rounds: int, python: Path | None) -> None:
    """Measure one machine with one kind of request."""
    requests, live = stream(devices, members)
    ours, theirs, granted, same = [], [], 0, True
    for _ in range(rounds):
        took, given = decide(devices, requests, live)
        ours.append(took)
        granted = sum(one is not None for one in given)
        if python is not None:
            answer = peer(python, devices=devices, stream=requests, live=live, memory=False)
            theirs.append(answer["seconds"])
            same = same and answer["digest"] == hashlib.sha256(json.dumps(given).encode()).hexdigest()
    each = statistics.median(ours) / len(requests)
    shown = f"{devices:7} {members:>7} {granted / len(requests):7.0%} | {1 / each:6.0f} {each * 1e6:8.1f}"
    if theirs:
        other = statistics.median(theirs) / len(requests)
        shown += f" | {1 / other:8.0f} {other * 1e6:8.1f} | {other / each:6.1f}"
    print(shown + ("" if same else "  (not the same decisions)"), flush=True)


def stream(devices: int, members: str) -> tuple[Stream, int]:
    """Return (members, bytes) of each request, and how many are held at once."""
    rng = random.Random(f"{devices} {members}")
    found = []
    for _ in range(DECISIONS.get(devices, 1000)):
        count = rng.randint(1, min(8, devices)) if members == "mixed" else int(members)
        found.append((count, sum(rng.randint(GB // 2, 6 * GB) for _ in range(count))))
    mean = sum(size for _, size in found) / len(found)
    return found, max(1, int(0.75 * devices * CARD * GB / mean))


def machine(devices: int) -> Book:
    return opened(Slot(("node", f"GPU-{i}"), i, Kind.GPU, (Backend.CUDA,), CARD * GB) for i in range(devices))


def asks(requests: Stream) -> list[Ask]:
    return [Ask(Kind.GPU, Backend.CUDA, size, min_devices=count, max_devices=count) for count, size in requests]


def decide(devices: int, requests: Stream, live: int) -> tuple[float, list[list[tuple[int, int]] | None]]:
    """Return the seconds of CPU that all decisions took, and what was granted."""
    book, wanted, holder = machine(devices), asks(requests), leases.job(1)
    held: deque[int] = deque()
    given: list[list[tuple[int, int]] | None] = []
    began = time.process_time()
    for ask in wanted:
        answer = book.place(ask)
        if not isinstance(answer, Granted):
            given.append(None)
            continue
        book, lease = book.grant(ask, answer, holder, 0.0)
        given.append([(member.id, member.bytes) for member in answer.members])
        held.append(lease.id)
        if len(held) > live:
            book, _ = book.let_go(held.popleft(), holder)
    return time.process_time() - began, given


def memory(python: Path | None) -> None:
    """Print the bytes that one of a thousand leases takes."""
    for count in (1, 8):
        requests = [(count, GB // 100 * count)] * 1000
        book, wanted, holder = machine(64), asks(requests), leases.job(1)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for ask in wanted:
            answer = book.place(ask)
            assert isinstance(answer, Granted)
            book, _ = book.grant(ask, answer, holder, 0.0)
        del answer
        ours = (tracemalloc.get_traced_memory()[0] - before) / len(book.leases)
        tracemalloc.stop()
        shown = f"a lease of {count} on 64 devices: {ours:,.0f} B"
        if python is not None:
            answer_ = peer(python, devices=64, stream=requests, live=1000, memory=True)
            shown += f", jayrun {answer_['bytes'] / max(1, answer_['leases']):,.0f} B"
        print(shown)


def peer(python: Path, **asked: Any) -> dict[str, Any]:
    """Let jayrun decide, in a process of its own."""
    done = subprocess.run(
        [python, Path(__file__).with_name("allocator_reference.py")],
        input=json.dumps({"gb": CARD, **asked}),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def environment(scratch: Path) -> Path | None:
    """Return the Python of an environment that has jayrun, made now if it is not there; None where that fails."""
    python = scratch / "bin" / "python"
    if python.exists() and not subprocess.run([python, "-c", "import jayrun"], capture_output=True).returncode:
        return python
    try:
        venv.create(scratch, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "-q", PEER], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
        print(f"{PEER} cannot be installed into {scratch}: {said[-1] if said else error}", file=sys.stderr)
        return None
    return python


if __name__ == "__main__":
    main()
