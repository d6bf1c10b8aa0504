"""Points of a pool's history: each second, and the largest use of each 10 seconds and 5 minutes."""

from __future__ import annotations

from calibration.domain.samples import Attribution, Reading
from calibration.models import Point
from calibration.services import STEPS, points_of


class History:
    """The points that are not complete yet. A restart loses at most the open ones of the coarse steps."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], Point] = {}
        self._last: dict[int, int] = {}

    def points(self, reading: Reading, attribution: Attribution) -> list[Point]:
        """Return the points that are complete with this reading, at most one per pool, step and second."""
        done: list[Point] = []
        for step in STEPS:
            at = int(reading.wall) // step * step
            if self._last.get(step, at) != at:
                done += [point for (s, _), point in self._open.items() if s == step]
                self._open = {key: point for key, point in self._open.items() if key[0] != step}
            self._last[step] = at
            for point in points_of(reading, attribution, step, at):
                before = self._open.get((step, point.pool))
                if before is None or (point.used or 0) >= (before.used or 0):
                    self._open[step, point.pool] = point
        return done
