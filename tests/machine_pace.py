"""How slow the machine is while a test measures: what a promise in seconds may take here and now."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

ORDINARY = 0.015
"""Seconds in which an ordinary machine starts a bare interpreter."""
TRIES = 5


def slowness() -> float:
    """Return how many times longer than ordinary the start of a process takes in which nothing of ours runs; 1 or more.

    It is the median of a few.
    """
    taken = []
    for _ in range(TRIES):
        begun = time.monotonic()
        subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=True)
        taken.append(time.monotonic() - begun)
    return max(1.0, sorted(taken)[TRIES // 2] / ORDINARY)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """See that what is done here takes less than so long, or so much longer as bare starts take before or after it."""
    before, begun = slowness(), time.monotonic()
    yield
    took = time.monotonic() - begun
    if took >= seconds:
        times = max(before, slowness())
        assert took < seconds * times, f"{took:.2f} s, not {seconds:g} s on a machine that is {times:.1f} times slower"
