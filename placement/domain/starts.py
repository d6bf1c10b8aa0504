"""What a cycle starts: the place and the charge at once, all that was asked at its turn when somebody reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from placement.domain.bars import Bar, Guard, asking
from placement.domain.decision import Decision, Grant
from placement.domain.gate import decide_on, granted
from placement.domain.places import Board, waiting_demand
from placement.domain.pressing import Pressing
from placement.domain.rooms import Fit
from placement.domain.snapshot import Running, Snapshot, Waiting


@dataclass(frozen=True, slots=True)
class Start:
    """One start, and what it was asked against: the starts before it, and the plan that was kept by then."""

    waiting: Waiting
    grant: Grant
    run: Running
    bar: Bar | None


def grant_at(board: Board, waiting: Waiting, fits: Sequence[Fit]) -> Grant:
    """Return what the job gets at the best of the places where it may start."""
    spot = fits[0][0] if len(fits) == 1 else min(fits, key=_best_fit)[0]
    return granted(spot.place, board.parts(waiting_demand(waiting), spot.place))


def _best_fit(fit: Fit) -> tuple[int, tuple[str, int, str]]:
    """Return the key of the place to take, by the gate's rule."""
    spot, needs, cold = fit
    _, need, margin = needs[0]
    left = (spot.device or spot.side.ram).left(margin) or 0
    return (-left if cold else left - need), spot.place.order


def explained(snapshot: Snapshot, starts: Sequence[Start]) -> Iterator[Decision]:
    """Yield the decision of each start, every question asked once more against what stood at its turn."""
    board = Board(snapshot)
    pressing = Pressing(board)
    guard: Guard | None = None
    for start in starts:
        if start.bar is not None and (guard is None or guard.bar is not start.bar):
            guard = Guard(board, start.bar)
        aside = None if guard is None else asking(guard, start.waiting)
        decision = decide_on(board, start.waiting, pressing.asking(start.waiting, aside))
        if decision.grant != start.grant:
            raise AssertionError(f"#{start.waiting.job} started with {start.grant}, but: {decision.headline}")
        yield decision
        board.admit(start.run)
        pressing.served(start.waiting)
