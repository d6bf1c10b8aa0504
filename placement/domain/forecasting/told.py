"""What people are told of a plan: each decision with the start that is expected for whoever waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from placement.domain.admission.decision import Decision, PlannedStart
from placement.domain.forecasting.forecast import forecast
from placement.domain.planning.plan import Plan


def told(plan: Plan) -> tuple[Decision, ...]:
    """Return every decision in queue order, with the predicted start of those that wait."""
    starts = predicted(plan)
    return tuple(replace(d, planned=starts[d.job]) if d.job in starts else d for d in plan.decisions())


def judged(plan: Plan, job: int) -> Decision:
    """Return a job's decision with the plan that is kept for it, if it is the one who has it, and no forecast."""
    decision, bar = plan.explain(job), plan.bar
    return decision if bar is None or bar.job != job else replace(decision, planned=bar.planned(plan.board.snapshot.at))


def predicted(plan: Plan) -> Mapping[int, PlannedStart]:
    """Return when each job that still waits is expected to start, by job."""
    return forecast(plan.board, list(plan.waits()), plan.bar)
