"""Whether a node's RAM is short: entered at one mark, left at a lower one, so that it does not flutter."""

from __future__ import annotations

from placement.domain.knobs import Knobs

_SLACK = 1e-9  # shares are decimal texts held in binary


def marks_of(own: tuple[float, float] | None, knobs: Knobs) -> tuple[float, float]:
    """Return the high and the low mark of a node: its own, else the knobs'."""
    return own if own is not None else (knobs.ram_high, knobs.ram_low)


def limit_of(declared: int | None, total: int | None) -> int | None:
    """Return the bytes that jobs may use of RAM, None where nothing less than all of it is declared."""
    return None if declared is None or (total is not None and declared >= total) else declared


def under_pressure(
    before: bool,
    capacity: int | None,
    available: int | None,
    high: float,
    low: float,
    *,
    limit: int | None = None,
    used_of_limit: int | None = None,
) -> bool:
    """Return whether RAM is short now, given whether it was a moment ago. Marks are shares of use.

    Entered at ``high`` or above by either measure (the machine's, or a declared ``limit`` with the bytes that count
    against it); left only when every known measure is at ``low`` or below. Unknown never presses.
    """
    used = None if capacity is None or available is None else capacity - available
    measures = ((used, capacity), (used_of_limit, limit))
    shares = [amount / whole for amount, whole in measures if amount is not None and whole]
    if before:
        return any(share > low + _SLACK for share in shares)
    return any(share >= high - _SLACK for share in shares)
