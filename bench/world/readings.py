"""What a sampler that looks once a second would have told a window: fewer readings, the same window.

Where memory and busy stay as they are, the first three readings and the last say all that the others would. The
window must be observed with :func:`patient` knobs, so that the time between counts as seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bench.world.busy import Busy
from bench.world.runs import EPS, Stretch
from calibration.domain.knobs import Knobs

SAME = 3
"""Readings of an unchanged level after which more of them change nothing but times."""


def patient(knobs: Knobs) -> Knobs:
    """Return knobs under which no time between readings is too long to prove anything."""
    return knobs.replace(stale_seconds=365 * 86_400.0)


def whole_seconds(held: Sequence[Stretch], after: float) -> Iterator[tuple[Stretch, int, int]]:
    """Yield each stretch with the first and the last whole second after ``after`` that it answers for.

    A step at a whole second counts as done at it; the last stretch answers for its own end, too.
    """
    for at, stretch in enumerate(held):
        first = max(math.floor(after + EPS) + 1, math.ceil(stretch.begin - EPS))
        last = math.floor(stretch.end + EPS) if at + 1 == len(held) else math.ceil(stretch.end - EPS) - 1
        if last >= first:
            yield stretch, first, last


def every(held: Sequence[Stretch], after: float, busy: Busy) -> Iterator[tuple[float, float, float]]:
    """Yield (second, MiB, busy) for each whole second after ``after``."""
    for stretch, first, last in whole_seconds(held, after):
        for second in range(first, last + 1):
            yield float(second), stretch.level(second), busy.before(second)[0]


def decisive(held: Sequence[Stretch], after: float, busy: Busy) -> Iterator[tuple[float, float, float]]:
    """Yield those of :func:`every` without which a window would come out differently."""
    for stretch, first, last in whole_seconds(held, after):
        if abs(stretch.high - stretch.low) > EPS:
            for second in range(first, last + 1):
                yield float(second), stretch.level(second), busy.before(second)[0]
            continue
        second, told = first, 0
        while second <= last:
            share, until = busy.before(second)
            end = last if until == math.inf else min(last, max(second, math.floor(until + EPS)))
            while second <= end:
                if told >= SAME:
                    second = end
                yield float(second), stretch.low, share
                second, told = second + 1, told + 1
