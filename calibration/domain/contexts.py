"""What a process's context costs on a kind of card: learned from runs whose framework said what it held itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .resources import MIB

LEAST, MOST = 64 * MIB, 4096 * MIB
"""Outside of these no difference is a context: the peak was missed between two looks, or something else was held."""
FEW = 3
NEWEST = 20


@dataclass(frozen=True, slots=True)
class Allowance:
    """Bytes that one process's context is taken to cost, and how many runs say so (0: the knob)."""

    bytes: int
    runs: int = 0


def context_seen(peak: int | None, reserved: int | None) -> int | None:
    """Return what a process held besides what its framework reserved at most; None where that says nothing."""
    if peak is None or reserved is None or reserved <= 0:
        return None
    rest = peak - reserved
    return rest if LEAST <= rest <= MOST else None


def allowance(seen: Sequence[int], default: int) -> Allowance:
    """Return the median of the newest runs (newest first), rounded up to a MiB; the default while they are few."""
    newest = sorted(seen[:NEWEST])
    if len(newest) < FEW:
        return Allowance(default)
    return Allowance(-(-newest[len(newest) // 2] // MIB) * MIB, len(newest))
