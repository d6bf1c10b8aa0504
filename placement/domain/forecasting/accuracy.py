"""How good forecasts were, and what later ones learn from that.

A play knows neither who will submit later nor how much people overstate their limits. Both show in the record. How far
starts came after what was played, in units of the play's own width, sets the late end: the nine-tenths quantile of the
recent past, raised or lowered by how that did itself, so that it holds for nine of ten. The middle is left as played
(moving it by the record made it worse in replays: waits of hours answer hours too late), but for forecasts that stand
on limits, which are upper bounds by nature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from placement.domain.admission.decision import PlannedStart

LEAST = 20  # forecasts of one kind from which on their own record counts
MOST = 300  # the newest of one kind that count
SLACK = 30.0  # seconds by which even a start that is near may be off
WIDTH = 0.3  # of the time ahead: the least width of a forecast whose plays agree
LATE = 0.9  # of starts are to come by the late end
_TARGETS = (0.6, 0.99)
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


AHEAD: tuple[tuple[str, float, float], ...] = (
    ("up to 2 min", 0.0, 120.0),
    ("2 to 10 min", 120.0, 600.0),
    ("10 min to 1 h", 600.0, 3600.0),
    ("1 to 6 h", 3600.0, 21_600.0),
    ("more than 6 h", 21_600.0, math.inf),
)
GUESS = "guess"


def kind_of(sure: str, play_s: float) -> str:
    """Return the kind of forecast that learns from its own: guesses, and the others by how far ahead they are."""
    return GUESS if sure == GUESS else next((name for name, _, high in AHEAD if play_s < high), AHEAD[-1][0])


@dataclass(frozen=True, slots=True)
class Correction:
    """What the late end of a kind is set by. ``stretch`` None: the record is short, the play's own width stands."""

    stretch: float | None = None
    count: int = 0
    within: float | None = None  # the share of those recent ones that started by what was told as late


@dataclass(frozen=True, slots=True)
class Record:
    """The corrections by kind; ``all`` where a kind has too few of its own. ``lean`` is for what stands on limits."""

    by_kind: Mapping[str, Correction] = field(default_factory=dict)
    all: Correction = field(default_factory=Correction)
    lean: float = 1.0

    def of(self, sure: str, play_s: float) -> Correction:
        """Return the correction for such a forecast."""
        return self.by_kind.get(kind_of(sure, play_s), self.all)

    def corrected(self, told: PlannedStart, soonest_s: float = 0.0) -> PlannedStart:
        """Return a played start with its late end, and the middle of one that stands on limits, set by the record.

        The first ``soonest_s`` seconds are no forecast: it may not start sooner. Only what comes after can be off.
        """
        if told.in_s is None or told.at is None:
            return told
        fixed = min(soonest_s, told.in_s)
        beyond = told.in_s - fixed
        by = self.of(told.sure, beyond)
        in_s = fixed + _middle(told.sure, beyond, self.lean)
        if told.keeps:  # a plan that is kept is never foretold later
            in_s = min(in_s, told.in_s)
        late_s = told.late_s
        if late_s is not None or by.stretch is not None:
            stretch = 1.0 if by.stretch is None else by.stretch
            late_s = in_s + stretch * _width(beyond, None if late_s is None else late_s - fixed)
        at = told.at if told.keeps else told.at - told.in_s + in_s  # where it is kept, the second to keep
        return replace(told, in_s=in_s, at=at, late_s=late_s)


def learned(past: Sequence[Past]) -> Record:
    """Return what the record teaches; newest first. One that still waits counts once it is later than foretold."""
    ratios = [(p.waited_s + SLACK) / (p.play_s + SLACK) for p in past if p.sure == "limit" and p.waited_s is not None][
        :MOST
    ]
    lean = min(_LEAN[1], max(_LEAN[0], median(ratios))) if len(ratios) >= LEAST else 1.0
    kinds: dict[str, list[Past]] = {}
    for one in past:
        kinds.setdefault(kind_of(one.sure, one.play_s), []).append(one)
    found = {kind: _correction(some, lean) for kind, some in kinds.items()}
    every = _correction(past, lean)
    return Record({kind: c for kind, c in found.items() if c.stretch is not None}, every, lean)


def _correction(past: Sequence[Past], lean: float) -> Correction:
    judged = [(p, p.age_s if p.waited_s is None else p.waited_s) for p in past if p.waited_s is not None or _missed(p)]
    judged = judged[:MOST]
    hits = [waited <= p.late_s for p, waited in judged if p.late_s is not None]
    within = sum(hits) / len(hits) if hits else None
    if len(judged) < LEAST:
        return Correction(None, len(judged), within)
    off = sorted((w - _middle(p.sure, p.play_s, lean)) / _width(p.play_s, p.play_late_s) for p, w in judged)
    aim = LATE if within is None else min(_TARGETS[1], max(_TARGETS[0], LATE + (LATE - within)))
    # One more than there are, so that the next one, too, falls below with these chances.
    stretch = off[min(len(off), math.ceil(aim * (len(off) + 1))) - 1]
    return Correction(min(_STRETCH[1], max(_STRETCH[0], stretch)), len(judged), within)


def _missed(one: Past) -> bool:
    """Return whether it still waits though its late end has passed."""
    return one.waited_s is None and one.late_s is not None and one.age_s > one.late_s


def _middle(sure: str, play_s: float, lean: float) -> float:
    return _leaned(play_s, lean) if sure == "limit" else play_s


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


def figures(past: Iterable[Past]) -> Figures:
    """Return how these forecasts did; one that still waits and is past its late end counts as missed."""
    every = list(past)
    started = [p for p in every if p.waited_s is not None]
    overdue = [p for p in every if _missed(p)]
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
