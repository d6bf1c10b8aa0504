"""What people are told of a plan: each decision with the start that is expected for whoever waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from placement.domain.decision import Decision, PlannedStart, Verdict
from placement.domain.forecast import Forecast
from placement.domain.places import waiting_demand
from placement.domain.plan import Plan


def told(plan: Plan) -> tuple[Decision, ...]:
    """Return every decision in queue order, with the predicted start of those that wait."""
    starts = predicted(plan)
    return tuple(replace(d, planned=starts[d.job]) if d.job in starts else d for d in plan.decisions())


def predicted(plan: Plan) -> Mapping[int, PlannedStart]:
    """Return when each job that still waits is expected to start, by job."""
    forecast, at = Forecast(plan.board), plan.board.snapshot.at
    found: dict[int, PlannedStart] = {}
    for waiting in plan.queue:
        decision = plan.explain(waiting.job)
        if decision.verdict is Verdict.START:
            continue
        refused = next((c for c in decision.whole if not c.ok), None)
        if refused is not None:
            found[waiting.job] = PlannedStart("", None, None, None, why_none=refused.sentence)
            continue
        expected = forecast.expect(waiting, waiting_demand(waiting), decision.candidates)
        why = plan.why_no_plan(waiting.job)
        if plan.bar is not None and plan.bar.job == waiting.job:
            expected = plan.bar.planned(at)
        elif expected.at is None and why:
            expected = replace(expected, why_none=why)
        found[waiting.job] = expected
    return found
