"""How long a run is still expected to take, and how sure that is."""

from __future__ import annotations

import enum
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from placement.domain.knobs import Knobs

GUESS_SPREAD = 4.0  # a run of which nothing is known takes from a quarter of the default to four times as long


class Sure(enum.IntEnum):
    """What a predicted time stands on; a chain of them is as sure as its weakest part."""

    GUESS = 0
    LEARNED = 1
    LIMIT = 2

    @property
    def word(self) -> str:
        """Return the stable name used by the API."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Remaining:
    """Seconds from now until a run is expected to end, given how long it has run."""

    bar: float
    sure: Sure


def expected(limit: float | None, learned: float | None, knobs: Knobs) -> tuple[float, Sure]:
    """Return the whole duration in seconds: the limit, else what was learned, else the default."""
    if limit is not None:
        return limit, Sure.LIMIT
    if learned is not None:
        return learned, Sure.LEARNED
    return knobs.default_duration_seconds, Sure.GUESS


def remaining(
    elapsed: float, limit: float | None, learned: float | None, knobs: Knobs, seen: Sequence[float] = ()
) -> Remaining:
    """Return what a running job still takes.

    ``seen`` are the seconds of runs like it, shortest first. Of those only the ones count that took longer than it
    has run; what outlasted them all, or its prediction, is expected to take a share longer, and then another.
    """
    whole, sure = expected(limit, learned, knobs)
    longer = seen[bisect_right(seen, elapsed) :] if seen else ()
    if longer:
        end = quantile(longer, knobs.plan_quantile)
    elif elapsed < whole:
        end = whole
    else:
        end, sure = overdue(elapsed, max([whole, *seen[-1:]]), knobs.overdue_share), Sure.GUESS
    if limit is not None:
        end = min(end, max(elapsed, limit))
    return Remaining(end - elapsed, sure)


def overdue(elapsed: float, whole: float, share: float) -> float:
    """Return the seconds that a run is taken to last that outlasted ``whole``: a share more, as often as it takes."""
    if share <= 0:
        return elapsed
    whole = max(whole, 1.0)
    steps = math.floor(math.log(max(1.0, elapsed / whole)) / math.log1p(share)) + 1
    return whole * (1 + share) ** steps


def changes_at(
    elapsed: float, limit: float | None, learned: float | None, knobs: Knobs, seen: Sequence[float] = ()
) -> float:
    """Return after how many seconds of running what is expected of it changes next; until then its end stands."""
    end = elapsed + remaining(elapsed, limit, learned, knobs, seen).bar
    return min([end, *seen[bisect_right(seen, elapsed) :][:1]])


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest of the ordered values that at least this share of them do not exceed."""
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


@dataclass(frozen=True, slots=True)
class Length:
    """What is known of how long one run takes. ``seen``: seconds of runs like it, shortest first, may be empty."""

    limit: float | None
    learned: float | None
    seen: tuple[float, ...] = ()

    def sure(self, elapsed: float = 0.0) -> Sure:
        """Return what a draw stands on: what was seen where there is any, as it is less than a limit allows.

        A run that has outlasted all that was seen stands on its limit, or has become a guess.
        """
        if self.seen and elapsed < self.seen[-1]:
            return Sure.LEARNED
        if self.limit is not None:
            return Sure.LIMIT
        return Sure.LEARNED if self.learned is not None and elapsed < self.learned else Sure.GUESS

    def left(self, elapsed: float, share: float, knobs: Knobs) -> float | None:
        """Return the seconds still to run at a quantile, given that it has run for ``elapsed``; None: no end.

        Of the runs that were seen only those count that took longer than this one has by now.
        """
        if self.seen:
            longer = self.seen[bisect_right(self.seen, elapsed) :] if elapsed else self.seen
            if longer:
                left = quantile(longer, share) - elapsed
                return left if self.limit is None else max(0.0, min(left, self.limit - elapsed))
        whole = self.limit if self.limit is not None else self.learned
        if whole is None:
            whole = knobs.default_duration_seconds * GUESS_SPREAD ** (2.0 * share - 1.0)
        if elapsed < whole:
            return whole - elapsed
        return remaining(elapsed, self.limit, self.learned, knobs, self.seen).bar
