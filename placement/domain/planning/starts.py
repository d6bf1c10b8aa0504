"""What a cycle starts: the place and the charge at once, all that was asked at its turn when somebody reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from placement.domain.admission.choosing import best_fit
from placement.domain.admission.decision import Decision, Grant
from placement.domain.admission.demands import Demand, waiting_demand
from placement.domain.admission.gate import decide_on, granted
from placement.domain.admission.places import Board
from placement.domain.admission.prerequisites import beyond
from placement.domain.admission.rooms import Fit
from placement.domain.admission.spots import Spot, group_key
from placement.domain.planning.bars import Bar, Guard, asking
from placement.domain.planning.pressing import Pressing
from placement.domain.world.requests import Gpu
from placement.domain.world.snapshot import Running, Snapshot, Waiting


@dataclass(frozen=True, slots=True)
class Start:
    """One start, and what it was asked against: the starts before it, and the plan that was kept by then."""

    waiting: Waiting
    grant: Grant
    run: Running
    bar: Bar | None


def grant_at(board: Board, waiting: Waiting, fits: Sequence[Fit]) -> Grant:
    """Return what the job gets at the best of the places where it may start."""
    demand = waiting_demand(waiting)
    if waiting.request.gpu is Gpu.GROUP:
        return _group_at(board, waiting, demand, fits)
    spot = fits[0][0] if len(fits) == 1 else min(fits, key=_best_fit)[0]
    return granted(spot.place, board.parts(demand, spot.place))


def _group_at(board: Board, waiting: Waiting, demand: Demand, fits: Sequence[Fit]) -> Grant:
    """Return what a group gets at the best place, under a quota at the best that it leaves room for."""
    request, first = demand.request, None
    if request.group_memory is None:
        ordered = sorted(fits, key=lambda fit: group_key(fit[0], fit[1], fit[2], request.prefer_max))
    else:
        ordered = sorted(fits, key=lambda f: best_fit(request, f[0].place, board.parts(demand, f[0].place)))
    for spot, *_ in ordered:
        grant = granted(spot.place, board.parts(demand, spot.place))
        if waiting.conditions is None or beyond(waiting, board.holdings, grant) is None:
            return grant
        first = first or grant
    if first is None:
        raise ValueError("A group is granted a place only where it fits.")
    return first


def _best_fit(fit: Fit) -> tuple[int, tuple[str, int, str]]:
    """Return the key of the place to take, by the gate's rule for one device or none."""
    spot, needs, cold = fit
    assert isinstance(spot, Spot)
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
            board.aside = frozenset(start.bar.look.place.uuids)
        aside = None if guard is None else asking(guard, start.waiting)
        decision = decide_on(board, start.waiting, pressing.asking(start.waiting, aside))
        if decision.grant != start.grant:
            raise AssertionError(f"#{start.waiting.job} started with {start.grant}, but: {decision.headline}")
        yield decision
        board.admit(start.run)
        pressing.served(start.waiting)
