"""While an ended job's memory still drains, free is the lower of the readings."""

from __future__ import annotations

from collections.abc import Iterable

from calibration.domain.samples import Reading
from placement.domain.knobs import MIB, Knobs


class Drains:
    """Which pools drain, until when at the longest, and what they had free at the last reading."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        self._last: dict[str, int] = {}

    def begin(self, pools: Iterable[str], until: float) -> None:
        """Say that memory of a job that ended comes back to these pools; ``until`` is a monotonic second."""
        for pool in pools:
            self._until[pool] = until

    def pools(self) -> frozenset[str]:
        """Return the pools that still drain."""
        return frozenset(self._until)

    def active(self) -> bool:
        """Return whether any pool still drains: another look soon is worth it."""
        return bool(self._until)

    def free(self, reading: Reading, knobs: Knobs) -> dict[str, int | None]:
        """Return what to decide on per pool: free now, or the lower of two readings while it still rises.

        A pool has drained when free rose by less than ``drain_drop_mib`` since the reading before, or its time is over.
        """
        decided: dict[str, int | None] = {}
        for pool in reading.pools.values():
            now, before = pool.free, self._last.get(pool.pool)
            decided[pool.pool] = now
            if now is None:
                continue
            if pool.pool in self._until and before is not None:
                if now - before < knobs.drain_drop_mib * MIB or reading.at >= self._until[pool.pool]:
                    del self._until[pool.pool]
                else:
                    decided[pool.pool] = min(now, before)
            self._last[pool.pool] = now
        return decided
