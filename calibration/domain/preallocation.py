"""Preallocation: telling a run that grabbed a fixed share of the device from one that needed it."""

from __future__ import annotations

from .knobs import DEFAULTS, Knobs
from .windows import Window, flat_band

SHARES = (0.75, 0.9, 0.95)
"""Shares of the total or of the free memory that frameworks and model servers take by default."""


def looks_preallocated(
    window: Window,
    total: int | None,
    free_at_start: int | None,
    *,
    kind: str = "vram",
    cap: int | None = None,
    knobs: Knobs = DEFAULTS,
) -> bool:
    """Return whether a level came at once, stayed flat and stands near a usual share of what there was.

    "At once" is most of it within three readings, "what there was" the device's total, the free memory at the
    start, or the cap that the run was given. Context memory outside the pool of the framework is allowed for.
    """
    level = window.levels.get(kind)
    if level is None or level.samples < knobs.min_samples or level.peak == 0:
        return False
    if level.jump < knobs.prealloc_jump * level.peak:
        return False
    band = flat_band(level.risen_to, knobs)
    if level.samples <= len(level.recent) or level.low < level.risen_to - band:
        return False
    given = [amount for amount in (total, free_at_start, cap) if amount]
    outside = knobs.bytes_of("context_allowance_mib")
    targets = [share * amount for amount in given for share in SHARES]
    if cap:
        targets.append(float(cap))
    slack = knobs.prealloc_tolerance
    return any(target * (1 - slack) <= level.peak <= target * (1 + slack) + outside for target in targets)


def took_what_it_was_given(
    window: Window,
    total: int | None,
    free_at_start: int | None,
    receipt: int | None,
    *,
    kind: str = "vram",
    knobs: Knobs = DEFAULTS,
) -> bool:
    """Return whether a preallocation is covered by a cap (bytes) that the run's processes acknowledged.

    Only then is its peak no need; without a receipt the peak stands as measured.
    """
    if receipt is None or not looks_preallocated(window, total, free_at_start, kind=kind, cap=receipt, knobs=knobs):
        return False
    return window.levels[kind].peak <= receipt + knobs.bytes_of("context_allowance_mib")
