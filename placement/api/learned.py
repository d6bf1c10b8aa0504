"""What was learned of a workload: its runs, what the next is charged, and what people say about that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Query

from calibration.models import Sediment
from placement.api.job_acts import MARKS
from placement.api.nouns import Noun
from placement.api.shapes.job_acts import ArgumentBody
from placement.api.shapes.workload import (
    ForgetBody,
    KeyAsked,
    Need,
    NeedAsked,
    PinBody,
    RunList,
    RunMark,
    RunsAsked,
    WorkloadSaid,
)
from placement.api.workloads import learned
from placement.domain.admission.wire import estimate_json
from placement.domain.errors import NotFound
from placement.models import Role
from placement.selectors import workload_runs
from placement.selectors.subjects import Subject
from placement.selectors.workload_runs import Run
from placement.services import later, taught
from placement.views import wake

noun = Noun("Workloads")
_FIRST = datetime(1970, 1, 2, tzinfo=UTC)


@noun.read("/workloads/{str:ident}/runs", RunList)
def runs(request: HttpRequest, ident: str, asked: Query[RunsAsked]) -> dict[str, Any]:
    """Return the runs of one set of parameters, 25 at a time, and whether each counts."""
    subject, found = learned(ident, asked.key)
    shown, older = workload_runs.page(
        workload_runs.of_key(subject.workload, subject.script, found.params), asked.before
    )
    standings = found.standings(found.kinds[0])
    return {"runs": [_run(one, standings.get(one.id), found.kinds) for one in shown], "older": older}


@noun.read("/workloads/{str:ident}/need", Need)
def need(request: HttpRequest, ident: str, asked: Query[NeedAsked]) -> dict[str, Any]:
    """Say what a run with so many workers would be charged, with the whole ladder."""
    _, found = learned(ident, asked.key)
    workers = asked.workers or found.workers
    return {"workers": workers, "estimate": estimate_json(found.charged(workers))}


@noun.change("/workloads/{str:ident}/mark", WorkloadSaid, Role.OPERATOR, sample={"run": 7, "what": "atypical"})
def mark(request: HttpRequest, ident: str, asked: RunMark) -> dict[str, Any]:
    """Leave a run out of estimates, or let it count again."""
    subject, _ = learned(ident, "")
    row = Sediment.objects.filter(pk=asked.run, workload=subject.workload).first()
    if row is None:
        raise NotFound(f"{subject.title} has no run {asked.run}.")
    return _done(subject, taught.row_of(request.user, row, **MARKS[asked.what]))


@noun.change("/workloads/{str:ident}/forget", WorkloadSaid, Role.OPERATOR, sample={"days": 90})
def forget(request: HttpRequest, ident: str, key: Query[KeyAsked], asked: ForgetBody) -> dict[str, Any]:
    """Forget the runs of one set of parameters that ended more than so many days ago."""
    subject, found = learned(ident, key.key)
    before = max(timezone.now() - timedelta(days=asked.days), _FIRST)
    return _done(subject, taught.forget_before(request.user, subject.workload, found.params, before))


@noun.change("/workloads/{str:ident}/forget-later", WorkloadSaid, Role.OPERATOR)
def forget_later(request: HttpRequest, ident: str) -> dict[str, Any]:
    """Forget what its runs ask for while they run: no job is held for that until one asks again."""
    subject, _ = learned(ident, "")
    return _done(subject, later.forget(request.user, subject.workload, subject.id))


@noun.change("/workloads/{str:ident}/pin", WorkloadSaid, Role.OPERATOR, sample={"kind": "vram", "amount": "12 GiB"})
def pin(request: HttpRequest, ident: str, asked: PinBody) -> dict[str, Any]:
    """Pin what a run is charged, or let it be learned again."""
    subject, _ = learned(ident, "")
    amount = None if asked.amount is None else f"{asked.amount} B"
    only = "" if asked.whole else subject.id
    return _done(subject, taught.pin(request.user, subject.workload, asked.kind, amount, only))


@noun.change("/workloads/{str:ident}/argument", WorkloadSaid, sample={"name": "--seed", "matters": False})
def argument(request: HttpRequest, ident: str, asked: ArgumentBody) -> dict[str, Any]:
    """Say whether an argument of what is typed matters to memory, from now on."""
    subject, found = learned(ident, "")
    number = next((run.job for run in found.runs if run.job is not None), None)
    if number is None:
        raise NotFound("None of its runs was a job.")
    return _done(subject, taught.argument(request.user, number, asked.name, asked.matters))


def _done(subject: Subject, said: str) -> dict[str, Any]:
    wake.soon()
    return {"message": said, "id": subject.id}


def _run(one: Run, standing: Any, kinds: tuple[str, ...]) -> dict[str, Any]:
    told = workload_runs.line(one, standing, kinds)
    return {
        "id": one.id,
        "job": one.job,
        "at": one.at,
        "workers": one.row.key.workers,
        "peaks": {kind: one.row.peaks.get(kind) for kind in kinds},
        "duration_s": one.row.duration,
        "outcome": one.row.outcome,
        "standing": told.standing,
        "counts": told.counts,
        "atypical": one.row.atypical,
        "forgotten": one.forgotten,
        "marked_by": one.marked_by or None,
        "marked_at": one.marked_at,
    }
