"""Somebody else's memory on the devices, and how much running together slows jobs down."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Visit:
    """Somebody else holds ``size`` MiB of a device from ``begin`` to ``end``."""

    begin: float
    end: float
    device: int
    size: float


def visits(seed: int, devices: int, capacity: float, span: float) -> list[Visit]:
    """Return visits: 10 to 40 % of a device for 10 to 120 minutes, two hours apart on average, on each device."""
    rng = random.Random(f"outsiders:{seed}")
    found = []
    for device in range(devices):
        at = rng.expovariate(1 / 7200)
        while at < span:
            end = at + rng.uniform(600, 7200)
            found.append(Visit(at, end, device, rng.uniform(0.1, 0.4) * capacity))
            at = end + rng.expovariate(1 / 7200)
    return sorted(found, key=lambda visit: visit.begin)


def speed(busy: float) -> float:
    """Return the speed of each of several jobs whose busy shares add up to this on one device.

    A fit to the 1,388 pairs of jobs that Lucid's authors measured (ASPLOS 2023).
    """
    return 1 / (1 + 0.4 * max(0.0, busy - 0.9))
