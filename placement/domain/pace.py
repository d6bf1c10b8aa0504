"""How often something may be repeated when many ask for it: as often as leaves time for everything else."""

from __future__ import annotations


class Pace:
    """A share of the time that may be spent, with some credit so that whoever comes alone never waits.

    ``share`` of each second comes back, up to ``credit`` seconds; a repetition is due when nothing is owed. Nobody
    waits longer than ``longest`` seconds. Times are monotonic seconds.
    """

    def __init__(self, share: float, credit: float, longest: float) -> None:
        self._share, self._credit, self._longest = share, credit, longest
        self._left = credit
        self._at: float | None = None

    def spent(self, seconds: float, now: float) -> None:
        """Count one repetition that took so long and ended now."""
        self._refill(now)
        self._left = max(self._left - seconds, -self._longest * self._share)

    def wait(self, now: float) -> float:
        """Return the seconds until the next repetition is due, 0 when it is."""
        self._refill(now)
        return max(0.0, -self._left / self._share)

    def _refill(self, now: float) -> None:
        if self._at is not None:
            self._left = min(self._credit, self._left + max(0.0, now - self._at) * self._share)
        self._at = now
