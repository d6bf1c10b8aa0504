"""What the example workloads share: a device if there is one, memory that is really taken, a progress bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

# The examples are run as files from any directory.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from calibration.probes.simgpu import Device, NoDevice, Ram

GIB = 2**30
MIB = 2**20

__all__ = ["GIB", "MIB", "Ram", "device", "steps"]


def device() -> Device | None:
    """Return the simulated device that this job was given, None where it was given none."""
    try:
        return Device()
    except NoDevice:
        return None


def steps(total: int, seconds: float, unit: str) -> Iterator[int]:
    """Yield 0 … total-1 spread over the seconds, with a progress bar on stderr that rewrites its line."""
    began = time.monotonic()
    for number in range(total):
        yield number
        due = began + seconds * (number + 1) / total
        time.sleep(max(0.0, due - time.monotonic()))
        done, passed = number + 1, time.monotonic() - began
        left = passed / done * (total - done)
        bar = "█" * (20 * done // total)
        sys.stderr.write(
            f"\r{100 * done // total:3d}%|{bar:<20}| {done}/{total} [{_clock(passed)}<{_clock(left)}, "
            f"{done / passed:.2f} {unit}/s]"
        )
        sys.stderr.flush()
    sys.stderr.write("\n")


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"
