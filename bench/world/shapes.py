"""Memory of a run over its work: straight pieces with steps between them, and how busy it keeps its device."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from bench.world.submissions import Submission

CONTEXT = 300.0
"""MiB that a process's device context takes before anything is loaded."""
SPIKE = 30.0
"""Seconds of the excursion to the peak, at most a tenth of the run."""
IDLE = 0.02
"""Share of time in which kernels run while a run loads, rests or is quiet."""


@dataclass(frozen=True, slots=True)
class Piece:
    """From ``begin`` to ``end`` seconds of work the memory goes straight from ``low`` to ``high`` MiB."""

    begin: float
    end: float
    low: float
    high: float
    busy: float

    @property
    def slope(self) -> float:
        """Return MiB per second of work."""
        return (self.high - self.low) / (self.end - self.begin)


@dataclass(frozen=True, slots=True)
class Shape:
    """The pieces of one run. ``share``: it takes this part of what it is given at once, whatever it needs."""

    pieces: tuple[Piece, ...]
    share: float | None = None

    @property
    def duration(self) -> float:
        """Return the seconds of work of the whole run."""
        return self.pieces[-1].end

    @property
    def peak(self) -> float:
        """Return the most that it holds."""
        return max(max(piece.low, piece.high) for piece in self.pieces)

    @property
    def area(self) -> float:
        """Return the MiB-seconds that it occupies when nothing disturbs it."""
        return sum((piece.low + piece.high) / 2 * (piece.end - piece.begin) for piece in self.pieces)


class _Drawn:
    """Draws a shape from left to right."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.at = 0.0

    def to(self, seconds: float, high: float, busy: float, low: float | None = None) -> _Drawn:
        """Go to ``high`` in so many seconds, from ``low`` (else: hold ``high`` throughout)."""
        if seconds > 1e-3:  # less is a rounding error
            start = high if low is None else low
            self.pieces.append(Piece(self.at, self.at + seconds, start, high, busy))
            self.at += seconds
        return self


def _traced(row: Submission, rng: random.Random, before: float = 0.0) -> Shape:
    """Load, hold the steady level, and once go up to the peak for a moment."""
    steady = row.steady * row.peak
    context = min(CONTEXT, steady)
    drawn = _Drawn().to(before, context, 0.0)
    load = min(row.load, row.duration)
    drawn.to(load, steady, IDLE, context)
    length = min(SPIKE, 0.1 * row.duration, row.duration - load)
    first = min(max(row.spike * row.duration, load), row.duration - length)
    drawn.to(first - load, steady, row.util)
    drawn.to(length, row.peak, row.util)
    drawn.to(row.duration - first - length, steady, row.util)
    return Shape(tuple(drawn.pieces))


def _quiet(row: Submission, rng: random.Random) -> Shape:
    """Half of the runs read data first, for 90 to 600 s more, with nothing but a context on the device."""
    return _traced(row, rng, rng.uniform(90, 600) if rng.random() < 0.5 else 0.0)


def _ramp(row: Submission, rng: random.Random) -> Shape:
    """Grow for a third of the run, up to ten minutes, straight to the peak, and stay there."""
    context = min(CONTEXT, row.peak)
    grow = min(600.0, row.duration / 3)
    drawn = _Drawn().to(grow, row.peak, row.util, context).to(row.duration - grow, row.peak, row.util)
    return Shape(tuple(drawn.pieces))


def _staged(row: Submission, rng: random.Random) -> Shape:
    """Load 30 %, rest 60 to 240 s (at most a third of the run) without work, load the rest."""
    steady = row.steady * row.peak
    context, first = min(CONTEXT, steady), max(min(CONTEXT, steady), 0.3 * steady)
    load = min(row.load, 0.3 * row.duration)
    rest = min(rng.uniform(60, 240), row.duration / 3)
    drawn = _Drawn().to(0.3 * load, first, IDLE, context).to(rest, first, 0.0)
    drawn.to(0.7 * load, steady, IDLE, first)
    left = row.duration - drawn.at
    spike = min(SPIKE, 0.1 * left)
    drawn.to(0.5 * left, steady, row.util).to(spike, row.peak, row.util)
    drawn.to(row.duration - drawn.at, steady, row.util)
    return Shape(tuple(drawn.pieces))


def _second(row: Submission, rng: random.Random) -> Shape:
    """Work at 50 to 80 % of the peak for 30 to 70 % of the run, then at the peak to the end."""
    low = rng.uniform(0.5, 0.8) * row.peak
    context = min(CONTEXT, low)
    load = min(row.load, 0.2 * row.duration)
    turn = rng.uniform(0.3, 0.7) * row.duration
    drawn = _Drawn().to(load, low, IDLE, context).to(turn - load, low, row.util)
    drawn.to(row.duration - turn, row.peak, row.util)
    return Shape(tuple(drawn.pieces))


def _prealloc(row: Submission, rng: random.Random) -> Shape:
    """Half of the runs take 75 or 90 % of what they are given within a second; the others are as in the trace."""
    traced = _traced(row, rng)
    return Shape(traced.pieces, rng.choice((0.75, 0.9))) if rng.random() < 0.5 else traced


SHAPES: dict[str, Callable[[Submission, random.Random], Shape]] = {
    "trace": _traced,
    "ramp": _ramp,
    "quiet": _quiet,
    "staged": _staged,
    "second": _second,
    "prealloc": _prealloc,
}


def shape_of(row: Submission, name: str, seed: int) -> Shape:
    """Return the shape of one row: the same for the same seed, whoever asks."""
    return SHAPES[name](row, random.Random(f"{seed}:{name}:{row.id}"))


def taken(shape: Shape, given: float) -> Shape:
    """Return the shape of a run that takes its share of what it is given at once and keeps it."""
    if shape.share is None:
        return shape
    level = shape.share * given
    end = shape.duration
    brief = min(1.0, end / 2)
    busy = shape.pieces[-1].busy
    return Shape((Piece(0, brief, min(CONTEXT, level), level, IDLE), Piece(brief, end, level, level, busy)))
