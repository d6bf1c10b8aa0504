"""What a job waits for besides room: other jobs, a time, its array's turn, its owner's quota."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from placement.domain.jobs import Outcome, State


class After(enum.StrEnum):
    """How the other job has to end."""

    OK = "ok"
    ANY = "any"
    FAILED = "failed"


_TO = {After.OK: "complete", After.ANY: "end", After.FAILED: "fail"}
_NO_FAILURE = (Outcome.COMPLETED, Outcome.CANCELLED)


@dataclass(frozen=True, slots=True)
class Tie:
    """One job waits for another; ``state`` and ``outcome`` are the other one's, ``outcome`` None until it ended."""

    on: int
    when: After
    state: State
    outcome: Outcome | None = None

    @property
    def met(self) -> bool:
        """Return whether the other job has ended as asked."""
        if self.state is not State.FINISHED or self.outcome is None:
            return False
        completed = self.outcome is Outcome.COMPLETED
        return {After.OK: completed, After.ANY: True, After.FAILED: self.outcome not in _NO_FAILURE}[self.when]

    @property
    def never(self) -> bool:
        """Return whether it can never be met any more: the other job has ended otherwise."""
        return self.state is State.FINISHED and not self.met

    @property
    def to(self) -> str:
        """Return what the other job is waited for to do: complete, end or fail."""
        return _TO[self.when]


@dataclass(frozen=True, slots=True)
class Quota:
    """What one person's admitted and running jobs may hold together. Bytes; None where there is no limit."""

    user: str
    jobs: int | None = None
    vram: int | None = None
    ram: int | None = None


@dataclass(frozen=True, slots=True)
class Conditions:
    """All that one waiting job waits for. ``not_before`` in unix seconds, ``array`` 0 where it belongs to none."""

    after: tuple[Tie, ...] = ()
    not_before: float | None = None
    array: int = 0
    array_limit: int | None = None
    quota: Quota | None = None


def never_met(job: int, ties: tuple[Tie, ...]) -> str:
    """Return the sentence for a job that can never start because of how another one ended, "" where it still can."""
    broken = [tie for tie in ties if tie.never]
    if not broken:
        return ""
    told = " and ".join(f"#{t.on} to {t.to}, and #{t.on} {ended(t.outcome)}" for t in broken[:3])
    return f"#{job} can never start: it waits for {told}."


def ended(outcome: Outcome | None) -> str:
    """Return how a job ended, as the end of a sentence about it."""
    words = {
        Outcome.COMPLETED: "completed",
        Outcome.FAILED: "failed",
        Outcome.CANCELLED: "was cancelled",
        Outcome.TIMED_OUT: "reached its time limit",
        Outcome.CAP_EXCEEDED: "ran past its cap",
        Outcome.OUT_OF_MEMORY: "ran out of memory",
        Outcome.START_FAILED: "could not be started",
        Outcome.LOST: "was lost",
    }
    return words[outcome] if outcome is not None else "has not ended"
