"""What the tick keeps of pools: points, each second and the largest use of each 10 s and 5 min; who is inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from calibration.domain.inside import inside
from calibration.domain.samples import Attribution, Reading
from calibration.models import Point
from calibration.services import STEPS, Listed, points_of
from placement.domain.knobs import Knobs
from placement.domain.world import reservations
from placement.domain.world.snapshot import Pool
from placement.models import Job

INHABITANTS_EVERY = 3.0
"""Seconds between two lists of processes: sorting thousands each second is a tenth of what attributing them costs."""

Ledger = Mapping[str, tuple[int | None, int | None]]
"""Per pool, in bytes: what is booked (the sum of leases) and what is kept back."""


def ledger(jobs: Iterable[Job], reading: Reading, knobs: Knobs) -> Ledger:
    """Return what the jobs of a node have booked of each pool, and what is kept back there; None is unknown."""
    held: dict[str, list[tuple[int, int]]] = {name: [] for name in reading.pools}
    for job in jobs:
        for name, charge in job.charges.items():
            if name in held:
                held[name].append((charge.get("held") or 0, charge.get("margin") or 0))
    return {
        name: (sum(booked for booked, _ in held[name]), _kept(pool.kind, pool.total, [m for _, m in held[name]], knobs))
        for name, pool in reading.pools.items()
    }


def _kept(kind: str, total: int | None, margins: list[int], knobs: Knobs) -> int | None:
    if total is None:
        return None
    return reservations.kept(Pool("", "", kind, "", total, total, None, None), margins, 0, knobs).kept


class Inhabitants:
    """The processes inside each pool as they were written last."""

    def __init__(self) -> None:
        self._written: dict[str, Listed] = {}
        self._looked = float("-inf")

    def changed(
        self, reading: Reading, attribution: Attribution, guesses: Mapping[int, str] | None = None
    ) -> dict[str, Listed]:
        """Return the lists that read differently, every few seconds. Whoever writes them says so with ``wrote``."""
        if reading.at - self._looked < INHABITANTS_EVERY:
            return {}
        self._looked = reading.at
        return {n: one for n, one in inside(reading, attribution, guesses).items() if self._written.get(n) != one}

    def wrote(self, lists: Mapping[str, Listed]) -> None:
        """Remember what is stored."""
        self._written |= lists


class History:
    """The points that are not complete yet. A restart loses at most the open ones of the coarse steps."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, str], Point] = {}
        self._last: dict[int, int] = {}

    def points(self, reading: Reading, attribution: Attribution, booked: Ledger | None = None) -> list[Point]:
        """Return the points that are complete with this reading, at most one per pool, step and second."""
        done: list[Point] = []
        for step in STEPS:
            at = int(reading.wall) // step * step
            if self._last.get(step, at) != at:
                done += [point for (s, _), point in self._open.items() if s == step]
                self._open = {key: point for key, point in self._open.items() if key[0] != step}
            self._last[step] = at
            for point in points_of(reading, attribution, step, at, booked or {}):
                before = self._open.get((step, point.pool))
                if before is None or (point.used or 0) >= (before.used or 0):
                    self._open[step, point.pool] = point
        return done
