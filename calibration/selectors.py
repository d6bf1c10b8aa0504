"""Reader for pages: the history of a pool for charts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from calibration.models import Point

GAP = 5  # so many points that are missing in a row make a gap
STEPS = (1, 10, 300)  # seconds, as models.Point has them
MOST_POINTS = 720  # a chart is about as many pixels wide; more would only be sent and thrown away


@dataclass(frozen=True, slots=True)
class Span:
    """A range that charts offer: its length and which steps may serve it, finest first."""

    seconds: int
    steps: tuple[int, ...]


SPANS = {
    "10m": Span(600, (1,)),
    "1h": Span(3600, (10, 1)),
    "24h": Span(86_400, (300, 10)),
    "30d": Span(30 * 86_400, (300,)),
}
"""The first step is taken when it has points for most of what the finest one has (a young service has few)."""


@dataclass(frozen=True, slots=True)
class Series:
    """The history of one pool. Lists are of equal length; None is a gap. ``owners`` maps owner to bytes."""

    step: int
    at: tuple[int, ...]
    total: tuple[int | None, ...]
    used: tuple[int | None, ...]
    owners: dict[str, tuple[int, ...]]
    booked: tuple[int | None, ...] = ()
    kept: tuple[int | None, ...] = ()


def series(node: str, pool: str, span: Span, now: int, since: int | None = None) -> Series:
    """Return the points of a span that ends now, or those after ``since`` (unix seconds), oldest first.

    More points than a chart can show are thinned by keeping the one with the largest use of each stretch, so that
    a peak stays a peak.
    """
    start = now - span.seconds if since is None else max(since + 1, now - span.seconds)
    step = _step(node, pool, span, now)
    points = list(
        Point.objects.filter(node=node, pool=pool, step=step, at__gte=start, at__lte=now)
        .order_by("at")
        .only("at", "step", "total", "used", "owners", "booked", "kept")
    )
    points = _with_gaps(_thin(points), since)
    names = sorted({owner for point in points for owner in point.owners})
    return Series(
        step=step,
        at=tuple(p.at for p in points),
        total=tuple(p.total for p in points),
        used=tuple(p.used for p in points),
        owners={name: tuple(p.owners.get(name) or 0 for p in points) for name in names},
        booked=tuple(p.booked for p in points),
        kept=tuple(p.kept for p in points),
    )


def finest(node: str, pool: str, span: Span, now: int) -> tuple[list[str], Iterator[Point]]:
    """Return whoever held memory in a span that ends now, and all of its points at the finest step that is kept."""
    found = Point.objects.filter(node=node, pool=pool, step=span.steps[-1], at__gte=now - span.seconds, at__lte=now)
    owners: set[str] = set()
    for held in found.values_list("owners", flat=True).iterator(2000):
        owners |= held.keys()
    return sorted(owners), found.order_by("at").iterator(2000)


@dataclass(frozen=True, slots=True)
class Trace:
    """What one owner held of one pool: unix seconds and bytes, None where it was not read or not measured."""

    step: int
    at: tuple[int, ...]
    amounts: tuple[int | None, ...]


def of_owner(node: str, pool: str, owner: str, start: int, end: int, measured: bool = False) -> Trace:
    """Return what an owner held between two unix seconds, from the finest steps that still reach so far back.

    Points do not name who held nothing. That is zero for one who is named at times, or is known to be ``measured``;
    else nobody can tell.
    """
    best: list[Point] = []
    step = STEPS[0]
    for finer in STEPS:
        if (end - start) / finer > MOST_POINTS and finer != STEPS[-1]:
            continue
        found = Point.objects.filter(node=node, pool=pool, step=finer, at__gte=start - finer, at__lte=end)
        points = list(found.order_by("at").only("at", "step", "used", "owners"))
        if not best or _covers(points) > _covers(best):
            best, step = points, finer
        if points and points[0].at <= start + GAP * finer:
            break
    points = _with_gaps(_thin(best, owner), None)
    known = measured or any(owner in p.owners for p in points)
    amounts = (p.owners.get(owner, 0 if known and p.used is not None else None) for p in points)
    return Trace(step, tuple(p.at for p in points), tuple(amounts))


def _covers(points: list[Point]) -> int:
    return points[-1].at - points[0].at + points[0].step if points else 0


def _step(node: str, pool: str, span: Span, now: int) -> int:
    """Return the coarsest step that is there; a service that is younger than two coarse points shows finer ones."""
    for step in span.steps:
        seen = Point.objects.filter(node=node, pool=pool, step=step, at__gte=now - span.seconds)
        if seen[:3].count() >= 3:
            return step
    return span.steps[-1]


def _thin(points: list[Point], owner: str = "") -> list[Point]:
    """Return at most as many points as can be seen, of each stretch the one with the largest use, or owner's use."""
    if len(points) <= MOST_POINTS:
        return points
    width = -(-len(points) // MOST_POINTS)
    stretches = (points[i : i + width] for i in range(0, len(points), width))
    return [max(stretch, key=lambda p: (p.owners.get(owner) if owner else p.used) or 0) for stretch in stretches]


def _with_gaps(points: list[Point], since: int | None) -> list[Point]:
    """Return the points with an unknown one at both ends of each stretch in which nothing was read.

    Without them a chart would draw a slope over a time of which nobody knows anything.
    """
    stretches = sorted(b.at - a.at for a, b in pairwise(points))
    usual = stretches[len(stretches) // 2] if stretches else 0
    found: list[Point] = []
    before = since
    for point in points:
        near = max(usual, point.step)
        if before is not None and point.at - before > GAP * near:
            found += [Point(at=before + near), Point(at=point.at - near)]
        found.append(point)
        before = point.at
    return found
