"""What a job of the followed trace runs: simulated device memory held over time as its row says.

Standard library only. The environment names its row (ROW) and the folder (FOLDER) with ``rows.json`` and the ledger
``ran``; a line is written there when it begins and another when it ends.
"""

from __future__ import annotations

import json
import os
import sys
import time

from calibration.probes import simgpu

STEP = 0.2  # seconds between two levels while it grows
MIB = 1 << 20


def note(word: str) -> None:
    """Write down what happened: one line, written at once, so that lines of several jobs do not mix."""
    job, attempt = os.environ["TIDEGATE_JOB_ID"], os.environ["TIDEGATE_ATTEMPT"]
    line = f"{word} {os.environ['ROW']} {job} {attempt} {time.time():.4f}\n"
    ledger = os.open(os.path.join(os.environ["FOLDER"], "ran"), os.O_WRONLY | os.O_APPEND)
    os.write(ledger, line.encode())
    os.close(ledger)


def hold(pieces: list[list[float]]) -> None:
    """Go through pieces of (begin, end, low, high MiB, busy), in seconds from now."""
    began = time.monotonic()
    device = simgpu.Device()
    for begin, end, low, high, busy in pieces:
        at = begin
        while True:
            device.hold(int((low + (high - low) * (at - begin) / (end - begin)) * MIB), busy)
            at = min(end, at + STEP) if high != low else end
            time.sleep(max(0.0, began + at - time.monotonic()))
            if at >= end:
                break


def main() -> int:
    """Be the job; an error that it dies of is one line on stderr and code 1."""
    note("began")
    try:
        with open(os.path.join(os.environ["FOLDER"], "rows.json")) as file:
            hold(json.load(file)[os.environ["ROW"]])
    except (simgpu.NoDevice, simgpu.OutOfMemory) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        note("died")
        return 1
    note("ended")
    return 0
