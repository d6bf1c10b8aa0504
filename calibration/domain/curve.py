"""What rows of one key say about one kind of memory: need over worker counts, and lower bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from .knobs import Knobs
from .resources import gib, times, workers_of
from .sediment import Row


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of bytes, the sentence that says where it came from, and what else must be told."""

    bytes: int
    why: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Curve:
    """What one set of rows gives at one worker count, per rung of the ladder; None where it gives nothing."""

    measured: Figure | None
    fitted: Figure | None
    scaled: Figure | None

    @property
    def best(self) -> Figure | None:
        """Return the figure of the highest rung that has one."""
        return self.measured or self.fitted or self.scaled


def curve(rows: Sequence[Row], kind: str, workers: int, knobs: Knobs) -> Curve:
    """Return the figures for ``workers`` from rows of one workload, fingerprint and parameters."""
    by_workers = _needs(rows, kind, knobs)
    fewer = _newest([row for row in _ended(rows, kind) if row.key.workers <= workers], knobs.window_rows)
    floor = max((learned_peak(row, kind, knobs) for row in fewer), default=0)
    fitted = _fitted({count: figure.bytes for count, figure in by_workers.items()}, workers, floor)
    scaled = None
    if len(by_workers) == 1:
        ((count, figure),) = by_workers.items()
        scaled = Figure(
            -(-figure.bytes * workers // count),
            f"{gib(figure.bytes)} at {workers_of(count)}, scaled to {workers}",
            figure.notes,
        )
    return Curve(by_workers.get(workers), fitted, _larger(scaled, _still_open(rows, kind, workers)))


def lower_bound(rows: Sequence[Row], kind: str, workers: int, knobs: Knobs) -> Figure | None:
    """Return what the need is at least: really used by runs that did not complete, or asked for by a death.

    What a death asks for ends once a completed run followed it that was charged as much.
    """
    counting = [row for row in rows if not row.atypical]
    recent = _newest([row for row in counting if row.key.workers <= workers], knobs.window_rows)
    found = [
        Figure(row.peaks[kind], f"a run ({row.outcome}) really used {gib(row.peaks[kind])}")
        for row in recent
        if not row.completed and row.peaks.get(kind)  # nothing used is no bound and no news
    ]
    for row in recent:
        asked = row.next_charge.get(kind)
        if asked is None or any(_answers(later, row, kind, asked) for later in counting):
            continue
        why = "ran unseen for too long" if row.completed else f"ended {row.outcome}"
        found.append(Figure(asked, f"raised to {gib(asked)} because a run {why}"))
    return max(found, key=lambda figure: figure.bytes, default=None)


def sampled_first(rows: Sequence[Row], kind: str) -> list[Row]:
    """Return the rows; where a completed run was sampled, those without that stand on the kernel's figure.

    Such a figure is a guess from one process: it fills a gap, and neither raises nor lowers what was seen.
    """
    if kind != "ram" or all(row.by_kernel for row in _ended(rows, kind)):
        return list(rows)
    return [row for row in rows if not row.by_kernel]


def learned_peak(row: Row, kind: str, knobs: Knobs) -> int:
    """Return what a completed row says about the need: its peak, or less where it took what it was given."""
    peak = row.peaks[kind]
    return times(peak, knobs.preallocated_share) if row.preallocated and kind == "vram" else peak


def _answers(later: Row, death: Row, kind: str, asked: int) -> bool:
    return (
        later.completed
        and later.at > death.at
        and later.key.workers >= death.key.workers
        and later.charge.get(kind, -1) >= asked
    )


def _ended(rows: Sequence[Row], kind: str) -> list[Row]:
    return [row for row in rows if row.completed and not row.open and not row.atypical and kind in row.peaks]


def _newest(rows: Sequence[Row], count: int) -> list[Row]:
    return sorted(rows, key=lambda row: row.at, reverse=True)[:count]


def _needs(rows: Sequence[Row], kind: str, knobs: Knobs) -> dict[int, Figure]:
    groups: dict[int, list[Row]] = {}
    for row in _ended(rows, kind):
        groups.setdefault(max(1, row.key.workers), []).append(row)
    return {count: _need(_newest(group, knobs.window_rows), kind, knobs) for count, group in sorted(groups.items())}


def _need(rows: list[Row], kind: str, knobs: Knobs) -> Figure:
    peaks = sorted(learned_peak(row, kind, knobs) for row in rows)
    runs, largest = len(peaks), peaks[-1]
    notes = next((told for row in rows if (told := _told(row.lower_bound_note, kind))), ())  # the newest says enough
    if any(row.preallocated for row in rows) and kind == "vram":
        notes += (f"took what it was given; {knobs.preallocated_share:.0%} of it counts",)
    if runs < knobs.few_rows:
        return Figure(largest, "seen in 1 run" if runs == 1 else f"the largest of {runs} runs", notes)
    covered = peaks[max(0, math.ceil(Fraction(str(knobs.quantile)) * runs) - 1)]
    if largest > covered * Fraction(str(knobs.two_kinds_factor)):
        two = f"two kinds of run under one name: {knobs.quantile:.0%} of {runs} stayed within {gib(covered)}"
        return Figure(largest, f"the largest of {runs} runs", (*notes, two))
    return Figure(
        covered,
        f"{knobs.quantile:.0%} of {runs} runs stayed within it, largest {gib(largest, covered)}",
        notes,
    )


def _told(note: str, kind: str) -> tuple[str, ...]:
    """Return the parts of a row's note that are about this kind of memory, without its name before them."""
    parts = (part.partition(": ") for part in note.split("; ") if part)
    return tuple(rest if rest else head for head, _, rest in parts if head == kind or not rest)


def _fitted(needs: Mapping[int, int], workers: int, floor: int) -> Figure | None:
    if len(needs) < 2:
        return None
    counts = ", ".join(str(count) for count in needs)
    mean_x = Fraction(sum(needs), len(needs))
    mean_y = Fraction(sum(needs.values()), len(needs))
    spread = sum(((x - mean_x) ** 2 for x in needs), Fraction())
    slope = sum(((x - mean_x) * (y - mean_y) for x, y in needs.items()), Fraction()) / spread
    if slope <= 0:
        return Figure(max(*needs.values(), floor), f"flat over {counts} workers: more did not need more")
    base = mean_y - slope * mean_x
    value, why = math.ceil(base + slope * workers), f"a line through {counts} workers"
    fewest = min(needs)
    if base < 0 and workers < fewest:
        # Such a line runs below zero; nothing was seen down there, so the nearest figure stands.
        value, why = needs[fewest], f"as at {workers_of(fewest)}, the fewest seen"
    if floor > value:
        value, why = floor, f"{why}, not below what fewer or equal workers used"
    return Figure(value, why)


def _still_open(rows: Sequence[Row], kind: str, workers: int) -> Figure | None:
    found = [
        -(-row.peaks[kind] * workers // max(1, row.key.workers))
        for row in rows
        if row.open and not row.atypical and kind in row.peaks
    ]
    return Figure(max(found), "a run that still goes on has settled there") if found else None


def _larger(one: Figure | None, other: Figure | None) -> Figure | None:
    if one is None or other is None:
        return one or other
    return one if one.bytes >= other.bytes else other
