"""How good forecasts were, and what later ones learn from that: a share too early, and how wide nine of ten reach.

The play knows neither who will submit later nor how much people overstate their limits. Both show in the record: the
median of what jobs waited against what was played moves the middle, and the nine-tenths quantile of how far they were
off, in units of the play's own width, sets the late end. So "within p90" holds for nine of ten of the recent past.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from placement.domain.decision import PlannedStart

LEAST = 20  # forecasts of one kind from which on their own record counts
MOST = 300  # the newest of one kind that count
SLACK = 30.0  # seconds by which even a start that is near may be off
WIDTH = 0.1  # of the time ahead: the least width of a forecast whose plays agree
_LEAN = (0.2, 5.0)
_STRETCH = (0.0, 100.0)


@dataclass(frozen=True, slots=True)
class Past:
    """One forecast with what became of it, in seconds from when it was made.

    ``play_s`` and ``play_late_s`` as played, ``in_s`` and ``late_s`` as told; ``waited_s`` None: it has not started
    yet, ``age_s`` seconds after the forecast.
    """

    sure: str
    play_s: float
    play_late_s: float | None
    in_s: float
    late_s: float | None
    waited_s: float | None
    age_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Correction:
    """What a play is corrected by. ``stretch`` None: the record is too short, and the play's own width stands."""

    lean: float = 1.0
    stretch: float | None = None
    count: int = 0
    within: float | None = None  # the share of those recent ones that started by what was told as late


@dataclass(frozen=True, slots=True)
class Record:
    """The corrections by what a forecast stands on; ``all`` where a kind has too few of its own."""

    by_sure: Mapping[str, Correction] = field(default_factory=dict)
    all: Correction = field(default_factory=Correction)

    def of(self, sure: str) -> Correction:
        """Return the correction for this kind of forecast."""
        return self.by_sure.get(sure, self.all)

    def corrected(self, told: PlannedStart) -> PlannedStart:
        """Return a played start with its middle and its late end moved by the record."""
        if told.in_s is None or told.at is None:
            return told
        by = self.of(told.sure)
        late_s = told.late_s
        in_s = _leaned(told.in_s, by.lean)
        if late_s is not None or by.stretch is not None:
            stretch = 1.0 if by.stretch is None else by.stretch
            late_s = in_s + stretch * _width(told.in_s, late_s)
        if told.keeps:  # the plan itself stays the second that is kept
            in_s = min(in_s, told.in_s)
            return replace(told, in_s=in_s, late_s=None if late_s is None else max(in_s, late_s))
        return replace(told, in_s=in_s, at=told.at - told.in_s + in_s, late_s=late_s)


def learned(past: Sequence[Past]) -> Record:
    """Return what the record teaches; newest first. One that still waits counts once it is later than foretold."""
    kinds = {one.sure for one in past}
    found = {sure: _correction([p for p in past if p.sure == sure]) for sure in kinds}
    return Record({sure: c for sure, c in found.items() if c.count >= LEAST}, _correction(past))


def _correction(past: Sequence[Past]) -> Correction:
    known = [p for p in past if p.waited_s is not None][:MOST]
    if len(known) < LEAST:
        return Correction(count=len(known))
    ratios = [((p.waited_s or 0.0) + SLACK) / (p.play_s + SLACK) for p in known]
    lean = min(_LEAN[1], max(_LEAN[0], median(ratios)))
    waits = [(p, p.waited_s or 0.0) for p in known]
    waits += [(p, p.age_s) for p in past if p.waited_s is None and p.late_s is not None and p.age_s > p.late_s]
    off = sorted((waited - _leaned(p.play_s, lean)) / _width(p.play_s, p.play_late_s) for p, waited in waits)
    # One more than there are, so that the next one, too, falls below with nine chances of ten.
    stretch = off[min(len(off), math.ceil(0.9 * (len(off) + 1))) - 1]
    within = [waited <= p.late_s for p, waited in waits if p.late_s is not None]
    return Correction(
        lean=lean,
        stretch=min(_STRETCH[1], max(_STRETCH[0], stretch)),
        count=len(known),
        within=sum(within) / len(within) if within else None,
    )


def _leaned(play_s: float, lean: float) -> float:
    return max(0.0, lean * (play_s + SLACK) - SLACK)


def _width(play_s: float, play_late_s: float | None) -> float:
    own = 0.0 if play_late_s is None else play_late_s - play_s
    return max(own, WIDTH * play_s) + SLACK


@dataclass(frozen=True, slots=True)
class Figures:
    """How a group of forecasts did. Shares from 0 to 1, seconds; None where nobody of the group has started."""

    count: int
    waiting: int
    within_half: float | None
    within_late: float | None
    error_s: float | None
    relative: float | None  # median of error against wait


AHEAD: tuple[tuple[str, float, float], ...] = (
    ("up to 2 min", 0.0, 120.0),
    ("2 to 10 min", 120.0, 600.0),
    ("10 min to 1 h", 600.0, 3600.0),
    ("1 to 6 h", 3600.0, 21_600.0),
    ("more than 6 h", 21_600.0, math.inf),
)


def figures(past: Iterable[Past]) -> Figures:
    """Return how these forecasts did; one that still waits and is past its late end counts as missed."""
    every = list(past)
    started = [p for p in every if p.waited_s is not None]
    overdue = [p for p in every if p.waited_s is None and p.late_s is not None and p.age_s > p.late_s]
    errors = [abs((p.waited_s or 0.0) - p.in_s) for p in started]
    relative = [abs((p.waited_s or 0.0) - p.in_s) / max(1.0, p.waited_s or 0.0) for p in started]
    judged = len(started) + len(overdue)

    def share(by: Callable[[Past], float | None]) -> float | None:
        hits = sum(1 for p in started if by(p) is not None and (p.waited_s or 0.0) <= (by(p) or 0.0))
        return hits / judged if judged else None

    return Figures(
        count=len(every),
        waiting=len(every) - len(started),
        within_half=share(lambda p: p.in_s),
        within_late=share(lambda p: p.late_s),
        error_s=median(errors) if errors else None,
        relative=median(relative) if relative else None,
    )


def by_ahead(past: Sequence[Past]) -> tuple[tuple[str, Figures], ...]:
    """Return the figures by how far ahead a start was foretold; groups without any are left out."""
    groups = ((name, [p for p in past if low <= p.in_s < high]) for name, low, high in AHEAD)
    return tuple((name, figures(group)) for name, group in groups if group)


def moved(before_s: float | None, now_s: float | None) -> bool:
    """Return whether a forecast moved by more than a rounding; both in seconds from the same moment."""
    if before_s is None or now_s is None:
        return (before_s is None) != (now_s is None)
    return abs(now_s - before_s) > max(SLACK / 2, 0.05 * abs(before_s))


def moved_far(before_s: float | None, now_s: float | None) -> bool:
    """Return whether a forecast moved so much that what became of it is kept on its own."""
    if before_s is None or now_s is None:
        return (before_s is None) != (now_s is None)
    return abs(now_s - before_s) > max(300.0, 0.5 * abs(before_s))


__all__ = ["Correction", "Figures", "Past", "Record", "by_ahead", "figures", "learned", "moved", "moved_far"]
