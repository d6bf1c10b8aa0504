"""Whether a node's RAM is short: entered at one mark, left at a lower one, so that it does not flutter."""

from __future__ import annotations

_SLACK = 1e-9  # shares are decimal texts held in binary


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
