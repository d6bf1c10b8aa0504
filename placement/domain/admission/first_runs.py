"""What a run of which nothing is known has to find, and what is its fair part of RAM. Bytes."""

from __future__ import annotations

from functools import lru_cache

from calibration.domain.resources import MIB, times
from placement.domain.knobs import Knobs
from placement.domain.world.snapshot import Device, Node

share = lru_cache(maxsize=1024)(times)  # exact, and so worth remembering: the same for each cycle


def first_run_least(device: Device, knobs: Knobs) -> int:
    """Return what a run of which nothing is known has to find on a device."""
    return share(device.pool.declared, knobs.cold_start_share)


def first_run_ram(node: Node, knobs: Knobs) -> int:
    """Return what a run of which nothing is known has to find in RAM."""
    total = node.ram.declared if node.ram.total is None else node.ram.total
    return min(knobs.cold_ram_min_mib * MIB, int(total * knobs.cold_ram_min_share))


def fair_ram(node: Node, devices: int) -> int:
    """Return the most RAM that a first run on so many devices is charged: its part, were all devices taken."""
    total = node.ram.declared if node.ram.total is None else node.ram.total
    return total * max(1, devices) // (len(node.devices) + 1)
