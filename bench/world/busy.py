"""How busy something was, as steps over time."""

from __future__ import annotations

import math
from bisect import bisect_left

_SAME = 1e-6


class Busy:
    """Shares of time in which kernels ran, each from a second on."""

    __slots__ = ("_at", "_is")

    def __init__(self) -> None:
        self._at, self._is = [-math.inf], [0.0]

    def becomes(self, share: float, t: float) -> None:
        """Note the share from now on."""
        if self._at[-1] >= t:
            self._is[-1] = share
        elif abs(self._is[-1] - share) > _SAME:
            self._at.append(t)
            self._is.append(share)

    def before(self, t: float) -> tuple[float, float]:
        """Return the share just before this second, and when it changed (at the second or later; inf: not yet)."""
        at = bisect_left(self._at, t - _SAME)
        return self._is[at - 1], self._at[at] if at < len(self._at) else math.inf
