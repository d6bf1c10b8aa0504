"""Job states, outcomes, and the only moves between them."""

from __future__ import annotations

import enum


class State(enum.StrEnum):
    QUEUED = "queued"
    ADMITTED = "admitted"
    RUNNING = "running"
    FINISHED = "finished"


class Outcome(enum.StrEnum):
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    CAP_EXCEEDED = "cap_exceeded"
    OUT_OF_MEMORY = "out_of_memory"
    START_FAILED = "start_failed"
    LOST = "lost"


MOVES: frozenset[tuple[State, State]] = frozenset(
    {
        (State.QUEUED, State.ADMITTED),
        (State.ADMITTED, State.RUNNING),
        (State.RUNNING, State.FINISHED),
        (State.QUEUED, State.FINISHED),  # cancelled while it waited
        (State.ADMITTED, State.FINISHED),  # cancelled or not startable
        (State.ADMITTED, State.QUEUED),  # its node died before it ran: decided anew
    }
)

ACTIVE = (State.ADMITTED, State.RUNNING)


def may_move(before: State, after: State) -> bool:
    """Return whether a job may go from one state to the other."""
    return (before, after) in MOVES
