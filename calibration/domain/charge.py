"""Charges of running jobs: settling, what is held, what is expected to grow, and caps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .knobs import DEFAULTS, Knobs
from .ladder import Basis
from .resources import gib, times
from .windows import Level, Window

Proof = Literal["worked", "learned", "time"]
"""Held and worked long enough; past the learned time to its peak; flat for long and nothing proven."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A granted charge after a look at its window.

    ``proof`` is None while it has not settled; ``note`` says what a job may still grow to where that is open.
    """

    granted: int
    settled: bool
    proof: Proof | None
    note: str = ""


def settle(
    granted: int,
    basis: Basis,
    window: Window,
    knobs: Knobs = DEFAULTS,
    *,
    kind: str,
    at: float,
    measured_need: int | None = None,
    seconds_to_peak: float | None = None,
    shape_varies: bool = False,
    seen_on_device: bool | None = None,
    fixed_cap: int | None = None,
    before: Settled | None = None,
) -> Settled:
    """Return what a running job's granted charge of one kind is now: lowered once it settles, never raised.

    ``seconds_to_peak`` is the largest of its key's rows, ``seen_on_device`` None for a job without a device,
    ``fixed_cap`` a cap in bytes that cannot be lowered with the charge, ``before`` what this returned last.
    A kind that was never known settles never: it holds its whole charge.
    """
    if before is not None and before.settled:
        return Settled(min(granted, before.granted), True, before.proof, before.note)
    level = window.levels.get(kind)
    if level is None:
        return Settled(granted, False, None)
    if basis is Basis.MEASURED and seconds_to_peak is not None:
        proof = _learned(window, at, seconds_to_peak, seen_on_device, knobs)
    else:
        proof = _shown(window, level, seen_on_device, knobs)
    if proof is None:
        return Settled(granted, False, None)
    target = times(level.peak, knobs.settle_factor) + knobs.bytes_of("settle_add_mib")
    if proof == "time" and seen_on_device is False and kind == "vram":
        contexts = times(knobs.bytes_of("context_allowance_mib"), knobs.unseen_context_factor)
        target = max(contexts, knobs.bytes_of("unseen_mib"))
    if basis is Basis.MEASURED and measured_need is not None and not shape_varies:
        target = max(target, measured_need)
    lowered = min(granted, target)
    note = ""
    if fixed_cap is not None and fixed_cap > lowered:
        note = f"may still grow to {gib(fixed_cap)}"
    elif proof == "time":
        note = f"may still grow to {gib(granted)}"
    return Settled(lowered, True, proof, note)


def held(granted: int, used: int | None) -> int:
    """Return the bytes that a job holds: the larger of granted and used now; granted while use is unknown."""
    return granted if used is None else max(granted, used)


def growth(charge: int, used: int | None) -> int:
    """Return the bytes that a job is expected to still take; its whole charge while use is unknown."""
    return charge if used is None else max(0, charge - used)


def cap(granted: int, device_total: int | None, basis: Basis, knobs: Knobs = DEFAULTS) -> int:
    """Return the bytes at which a job is cut off: above its charge, never above the pool.

    A cold start is cut off at its charge, which is all that was left.
    """
    if basis is Basis.COLD_START:
        limit = granted
    else:
        limit = max(times(granted, knobs.cap_factor), granted + knobs.bytes_of("cap_add_mib"))
    return limit if device_total is None else min(limit, device_total)


def _learned(
    window: Window, at: float, seconds_to_peak: float, seen_on_device: bool | None, knobs: Knobs
) -> Proof | None:
    past = at - window.started_at >= knobs.settle_peak_factor * seconds_to_peak + knobs.settle_seconds
    return "learned" if past and seen_on_device is not False else None


def _shown(window: Window, level: Level, seen_on_device: bool | None, knobs: Knobs) -> Proof | None:
    if seen_on_device is None:
        holds = True
    else:
        on_device = window.levels.get("vram")
        least = times(knobs.bytes_of("context_allowance_mib"), knobs.settle_context_factor)
        holds = seen_on_device and on_device is not None and on_device.peak > least
    if holds and level.worked_seconds >= knobs.settle_seconds:
        return "worked"
    return "time" if level.flat_seconds >= knobs.unproven_settle_seconds else None
