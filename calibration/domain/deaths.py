"""What the next run must be charged after one died of memory."""

from __future__ import annotations

from typing import Literal

from .knobs import DEFAULTS, Knobs
from .resources import times

Death = Literal["cap", "watchdog", "room"]
"""How it came: at its own cap, stopped by the watchdog, or the pool ran out though it was within its cap."""


def next_charge_after_death(
    used: int | None, charge: int | None, cap: int | None, kind_of_death: Death, knobs: Knobs = DEFAULTS
) -> int | None:
    """Return what the next run must be charged, in bytes; None when no figure is known.

    At its cap: from the cap. Otherwise from what was used and charged; always by a real step.
    """
    step = knobs.bytes_of("death_add_mib")
    if kind_of_death == "cap" and cap is not None:
        return max(times(cap, knobs.death_factor), cap + step)
    asked = [] if used is None else [times(used, knobs.watchdog_factor)]
    asked += [] if charge is None else [charge + step]
    return max(asked, default=None)
