"""How long somebody waits before the next login is looked at, from the times of the failed ones."""

from __future__ import annotations

from collections.abc import Iterable

ALLOWED = 5  # failures
WITHIN = 300.0  # seconds
FIRST_WAIT = 15.0  # seconds; doubles with each further failure
LONGEST_WAIT = 900.0  # seconds
REMEMBERED = 86_400.0  # seconds after which a failure is of no use any more


def seconds_to_wait(failures: Iterable[float], now: float) -> float:
    """Return the seconds from ``now`` until a login may be tried again; times are on one clock, any order.

    The fifth failure within 5 minutes brings a wait of 15 s, each further one twice the last, at most 15 min.
    Five minutes of quiet after a wait forget the series. A failure that lies in the future is left out.
    """
    level, last, earlier = 0, 0.0, list[float]()
    for at in sorted(t for t in failures if t <= now):
        if level and at - last > wait_at(level) + WITHIN:
            level = 0
        earlier = [t for t in earlier if at - t < WITHIN] + [at]
        if level or len(earlier) >= ALLOWED:
            level += 1
        last = at
    return max(0.0, last + wait_at(level) - now) if level else 0.0


def wait_at(level: int) -> float:
    """Return the seconds of the first, second … wait of a series."""
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(level - 1, 30))
