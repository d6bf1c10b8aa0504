"""One pool as bare figures: what is left of it for whom, without the terms that explain it. Bytes throughout."""

from __future__ import annotations

from placement.domain.world.reservations import Ledger, floor

Asked = tuple[int | None, int, int]  # need (None: a first run), margin, what is proven where there is no need
Ask = tuple[Asked, Asked, int | None]  # of the device, of RAM, of a device that nobody measures (None: unsaid)


class Level:
    """Both rooms of a pool, and what it gives at most: the same terms as in ``reservations`` and ``places``.

    ``least`` is what a first run has to find there.
    """

    __slots__ = (
        "base",
        "booked",
        "draining",
        "floor",
        "kept",
        "least",
        "limit",
        "measurable",
        "most_now",
        "pool",
        "usable",
        "whole",
    )

    def __init__(self, ledger: Ledger, least: int) -> None:
        pool = ledger.pool
        self.pool, self.least, self.draining, self.measurable = pool.pool, least, pool.draining, ledger.measurable
        self.floor = floor(pool, ledger.knobs)
        self.whole = min(pool.declared, pool.total or 0)
        known = ledger.measurable and pool.total is not None
        self.usable = (pool.total or 0) - (pool.reserved or 0) if known else None
        self.limit = pool.declared if known or not ledger.measurable else pool.declared or None
        self.refresh(ledger)

    def refresh(self, ledger: Ledger) -> None:
        """Take over what the ledger says now."""
        self.booked, self.base, self.kept = ledger.booked, ledger.free_less_growth, ledger.back.kept
        left = self.left(0)
        self.most_now = -1 if left is None else left

    def left(self, margin: int) -> int | None:
        """Return the smaller of both rooms; the booked one alone where nothing can ever be measured."""
        if not self.measurable:
            return self.booked
        if self.base is None:
            return None
        kept = self.kept if self.kept > margin else margin
        room = self.base - kept
        return room if room < self.booked else self.booked

    def at_most(self, margin: int) -> int | None:
        """Return what the pool gives to somebody alone there, None before anything is known of it."""
        if self.limit is None or self.usable is None:
            return self.limit
        kept = self.floor if self.floor > margin else margin
        most = self.usable - kept
        return most if most < self.limit else self.limit

    def holds(self, need: int, margin: int) -> bool:
        """Return whether the pool could ever give that much."""
        most = self.at_most(margin)
        return most is None or need <= most

    def give(self, need: int | None, margin: int, proven: int, alone: bool) -> int | None:
        """Return the charge of a job that goes on the device, None where it has no room now."""
        if need is None and not self.measurable:  # the whole of it or nothing: what a run needs there is never learned
            return self.limit if self.could(need, margin, proven, alone) and self.booked >= (self.limit or 0) else None
        if need is None:
            left, wanted = self.left(0), max(self.least, proven)
            if left is None or left < wanted or self.draining or not self.holds(wanted, 0):
                return None
            return left
        if not self.holds(need, margin):
            if not alone or not self._lowered(need):
                return None
            need = self.at_most(margin) or 0
        left = self.left(margin)
        return need if left is not None and need <= left else None

    def could(self, need: int | None, margin: int, proven: int, alone: bool) -> bool:
        """Return whether the device could serve the job when it is free."""
        if need is None:
            if not self.measurable:
                return alone and self.holds(proven, 0)
            return self.holds(max(self.least, proven), 0)
        return self.holds(need, margin) or (alone and self._lowered(need))

    def _lowered(self, need: int) -> bool:
        """Return whether somebody alone gets by with the whole less what is always kept."""
        return self.limit is not None and need <= self.whole

    def share(self, fair: int, part: float, proven: int) -> int | None:
        """Return the charge of a first run in RAM: a part of what is left, none above what is fair."""
        left, least = self.left(0), max(self.least, proven)
        if left is None or not self.holds(least, 0):
            return None
        need = max(least, min(int(left * part), fair))
        return need if need <= left else None
