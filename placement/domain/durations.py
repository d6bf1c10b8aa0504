"""How long a run is still expected to take, and how sure that is."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from placement.domain.knobs import Knobs


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
    """Seconds from now. None: a run without an end.

    ``bar`` is the end that was promised first (0 once it has passed), ``forecast`` what is shown to people.
    """

    bar: float | None
    forecast: float | None
    sure: Sure


def expected(limit: float | None, learned: float | None, knobs: Knobs) -> tuple[float, Sure]:
    """Return the whole duration in seconds: the limit, else what was learned, else the default."""
    if limit is not None:
        return limit, Sure.LIMIT
    if learned is not None:
        return learned, Sure.LEARNED
    return knobs.default_duration_seconds, Sure.GUESS


def remaining(elapsed: float, limit: float | None, learned: float | None, knobs: Knobs) -> Remaining:
    """Return what a running job still takes: overdue a share more, past twice its prediction no end."""
    whole, sure = expected(limit, learned, knobs)
    if elapsed < whole:
        return Remaining(whole - elapsed, whole - elapsed, sure)
    if elapsed > whole * knobs.endless_factor:
        return Remaining(None, None, sure)
    return Remaining(0.0, whole * knobs.overdue_share, Sure.GUESS)
