"""What came of a followed trace, whoever followed it: one row a job, and the figures of all. Times in seconds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Done:
    """A row of the trace: when it came, began for the first time and ended; None: it never did.

    ``grants`` are (device, charge in MiB, basis) of each of its runs.
    """

    row: int
    arrival: float
    began: float | None
    ended: float | None
    grants: tuple[tuple[int, int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Course:
    """All rows of one following. ``kills`` counts by word (oom, cap, watchdog), ``twice`` commands that ran again.

    ``start`` is the median from a grant to the first byte held, ``reaction`` from an event to the grant it allowed;
    ``tardy`` the p95 from a row's arrival to its job's row, and from a grant to the first byte.
    """

    name: str
    rows: Sequence[Done]
    kills: dict[str, int]
    start: float = 0.0
    reaction: float = 0.0
    twice: Sequence[int] = ()
    tardy: tuple[float, float] = (0.0, 0.0)

    @property
    def lost(self) -> list[int]:
        """Return the rows that never ended well."""
        return [done.row for done in self.rows if done.ended is None]

    def figures(self) -> dict[str, float]:
        """Return what is compared."""
        ended = [(done, done.ended) for done in self.rows if done.ended is not None]
        waits = [done.began - done.arrival for done in self.rows if done.began is not None]
        return {
            "makespan s": max((at for _, at in ended), default=0.0) - min(done.arrival for done in self.rows),
            "mean JCT s": statistics.fmean(at - done.arrival for done, at in ended) if ended else 0.0,
            "mean wait s": statistics.fmean(waits) if waits else 0.0,
            "longest wait s": max(waits, default=0.0),
            "starts out of order": float(out_of_order(self.rows)),
            "OOM kills": float(self.kills.get("oom", 0)),
            "cap kills": float(self.kills.get("cap", 0)),
            "watchdog kills": float(self.kills.get("watchdog", 0)),
        }


def out_of_order(rows: Sequence[Done]) -> int:
    """Return how many rows began while one that had come before them still waited for its first start."""
    came = sorted(rows, key=lambda done: (done.arrival, done.row))
    overtook = 0
    latest = float("-inf")  # first start of any that came before
    for done in came:
        began = float("inf") if done.began is None else done.began
        overtook += began < latest - 1e-3
        latest = max(latest, began)
    return overtook


def apart(one: Course, other: Course, seconds: float) -> list[str]:
    """Return a line for each row whose first start or end differs by more than this, in order of the earlier start."""
    there = {done.row: done for done in other.rows}
    pairs = [(done, there[done.row]) for done in one.rows if done.row in there]
    lines = []
    for a, b in sorted(pairs, key=lambda pair: min(done.began or float("inf") for done in pair)):
        if _far(a.began, b.began, seconds) or _far(a.ended, b.ended, seconds):
            lines.append(f"row {a.row}, came {a.arrival:.1f}: {one.name} {_told(a)}; {other.name} {_told(b)}")
    return lines


def _far(one: float | None, other: float | None, seconds: float) -> bool:
    return one is not other and (one is None or other is None or abs(one - other) > seconds)


def _told(done: Done) -> str:
    times = " to ".join("-" if at is None else f"{at:.1f}" for at in (done.began, done.ended))
    return f"{times} on " + ", ".join(f"gpu{device} with {size} MiB ({why})" for device, size, why in done.grants)


def ratio(one: float, other: float) -> float | None:
    """Return ``one`` as a multiple of ``other``, None where that says nothing."""
    return one / other if other else None


def table(courses: Sequence[Course], against: Course) -> str:
    """Return the figures of all side by side, each with its multiple of those of ``against``."""
    lines = ["| | " + " | ".join(course.name for course in courses) + " |", "|---" * (len(courses) + 1) + "|"]
    base = against.figures()
    all_figures = [course.figures() for course in courses]
    for name in base:
        cells = []
        for course, figures in zip(courses, all_figures, strict=True):
            times = ratio(figures[name], base[name])
            told = f"{figures[name]:.1f}" if name.endswith(" s") else f"{figures[name]:.0f}"
            cells.append(told if course is against or times is None else f"{told} ({times:.3f} x)")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
