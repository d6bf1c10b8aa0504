"""A group of equal runs that fail one after the other, fast: whoever queued a thousand of them made one mistake."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placement.domain.jobs import Outcome

HOLDER = "tidegate"
"""Who holds such a group, as a job's page names it."""
COUNTS = (Outcome.FAILED, Outcome.START_FAILED)
SILENT = (Outcome.CANCELLED, Outcome.LOST)
"""Ends that say nothing about the command: they neither count nor break a streak."""


@dataclass(frozen=True, slots=True)
class Run:
    """One ended run. ``seconds`` None where it never ran."""

    job: int
    outcome: Outcome
    seconds: float | None = None
    code: int | None = None
    signal: int | None = None

    def fast_failure(self, within_s: float) -> bool:
        """Return whether it failed within so many seconds of its start."""
        return self.outcome in COUNTS and (self.seconds is None or self.seconds <= within_s)

    def told(self) -> str:
        """Return the job with how it ended: ``#3 (code 1)``."""
        if self.code is not None:
            return f"#{self.job} (code {self.code})"
        return f"#{self.job} ({'could not start' if self.signal is None else f'signal {self.signal}'})"


def streak(newest_first: Sequence[Run], count: int, within_s: float) -> tuple[Run, ...]:
    """Return the last ``count`` runs, oldest first, where all of them failed fast; () where not, or count is 0."""
    told = [run for run in newest_first if run.outcome not in SILENT][: max(0, count)]
    if not told or len(told) < count or not all(run.fast_failure(within_s) for run in told):
        return ()
    return tuple(reversed(told))


def why(runs: Sequence[Run], within_s: float) -> str:
    """Return why the group is held, in at most 200 characters."""
    shown = [run.told() for run in runs[-5:]]
    words = f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]
    return f"{words} of this group failed within {within_s:g} s of their start, one after the other"[:200]
