"""Why a rung of the trust ladder has no number, in words: the part that would have to be there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .ladder import Basis
from .resources import workers_of
from .sediment import Key, Row


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is to stand on: rows of the key as it is now, and of the sources before their last change."""

    key: Key
    kind: str
    current: Sequence[Row]
    older: Sequence[Row]

    @property
    def counts(self) -> list[int]:
        """Return the worker counts at which a run of the key was measured to its end, fewest first."""
        return sorted({max(1, row.key.workers) for row in self.current if _measured(row, self.kind)})


def _measured(row: Row, kind: str) -> bool:
    return row.completed and not row.open and not row.atypical and kind in row.peaks


def _measured_none(seen: Seen) -> str:
    if seen.counts:
        return f"no run with {workers_of(max(1, seen.key.workers))} was measured, only with {_listed(seen.counts)}"
    rows = seen.current
    if any(row.open for row in rows):
        return "its first run still goes on"
    if any(row.completed and row.atypical for row in rows):
        return "its runs are marked as not typical"
    if rows and not any(row.completed for row in rows):
        return f"none of its {len(rows)} runs completed" if len(rows) > 1 else "its one run did not complete"
    if rows:
        return "its runs were over before anything was measured"
    return "not run since its sources changed" if seen.older else "no run like this was measured yet"


def _fitted_none(seen: Seen) -> str:
    one = f"only {seen.counts[0]} was" if seen.counts else "none was"
    return f"needs two worker counts, {one} measured"


def _scaled_none(seen: Seen) -> str:
    if seen.counts:
        return "several worker counts were measured, so a line is fitted"
    return "needs a run that was measured at any worker count"


def _edited_none(seen: Seen) -> str:
    if seen.older:
        return "no run from before the sources changed completed"
    return "the sources have not changed since" if seen.current else "no run from before the sources changed"


def _similar_none(seen: Seen) -> str:
    return "no run of this script was measured" if seen.key.script else "the command names no script to compare by"


def _listed(counts: Sequence[int]) -> str:
    words = [str(count) for count in counts]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


_WHYS: Mapping[Basis, Callable[[Seen], str]] = {
    Basis.MEASURED: _measured_none,
    Basis.FITTED: _fitted_none,
    Basis.SCALED: _scaled_none,
    Basis.EDITED: _edited_none,
    Basis.SIMILAR: _similar_none,
    Basis.HINT: lambda _: "no workload's author set a preset",
    Basis.DECLARED: lambda _: "nothing was declared",
    Basis.COLD_START: lambda _: "not needed",
}


def why_none(basis: Basis, seen: Seen) -> str:
    """Return why this rung has no number; a cold start never has one."""
    return _WHYS[basis](seen)
