"""Answers at submit: could this ever start, would it start now, and with how many workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from calibration.domain.estimate import Estimate
from placement.domain.admission import checks
from placement.domain.admission.decision import Check
from placement.domain.admission.demands import demand_of
from placement.domain.admission.gate import SETS_SHOWN, about_ever
from placement.domain.admission.many_devices import all_places
from placement.domain.admission.places import Board
from placement.domain.planning.plan import after_queue
from placement.domain.world.requests import Gpu, Request
from placement.domain.world.snapshot import Snapshot, Waiting


def could_ever(snapshot: Snapshot, request: Request, estimate: Estimate) -> tuple[Check, ...]:
    """Return the places that could serve when free, each an ok check; else only refusals, the sum of them first.

    So the request is infeasible exactly when the first check is not ok.
    """
    board, demand = Board(snapshot), demand_of(request, estimate)
    asked = [checks.ever(board, demand, place) for place in all_places(board, demand)]
    serving = tuple(check for check in asked if check.ok)
    nearest = sorted(asked, key=lambda check: check.shortfall)[:SETS_SHOWN] if request.gpu is Gpu.GROUP else asked
    return serving or (about_ever(board, demand, asked), *nearest)


def max_workers(snapshot: Snapshot, template: Waiting, estimate_for: Callable[[int], Estimate], limit: int = 64) -> int:
    """Return the largest number of workers that would start in the next cycle, 0 when none would.

    Asked of the gate itself, behind everybody who waits already, so that taking the advice at once succeeds.
    """
    cycle = after_queue(snapshot)
    for workers in range(limit, 0, -1):
        asked = replace(template, workers=workers, estimate=estimate_for(workers))
        if cycle.may_start(asked):
            return workers
    return 0
