"""The job page as frozen values: what a person needs to know about one job, in the order they ask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from calibration.domain.resources import gib
from calibration.domain.samples import RAM
from placement.domain.jobs import State
from placement.domain.submitting.arrays import with_index
from placement.domain.submitting.taken import Kind
from placement.domain.world.requests import Exclusive
from placement.models import Device, Job, Role
from placement.selectors import (
    access,
    asked_inside,
    expected,
    held,
    ladder,
    missing,
    progress,
    proof,
    pruned,
    raised,
    remedy,
    rows,
    terms,
    timeline,
    verdict,
    wait_cycles,
    wording,
)
from placement.selectors.expected import Expected
from placement.selectors.held import ChargeRow
from placement.selectors.ladder import Ladder
from placement.selectors.progress import Progress
from placement.selectors.proof import Fact
from placement.selectors.queue import digest
from placement.selectors.raised import Raised
from placement.selectors.remedy import Way
from placement.selectors.terms import Term
from placement.selectors.timeline import Stretch
from placement.selectors.verdict import Verdict
from placement.selectors.wording import mapping, whole

REPEATS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class JobPage:
    """All that the live part of the page shows."""

    id: int
    name: str
    owner: str
    state: str
    outcome: str
    tone: str
    words: tuple[str, ...]
    lead: str
    sub: str
    submitted: datetime
    started: datetime | None
    ended: datetime | None
    where: str
    basis: str
    chip: str
    verdict: Verdict | None
    expected: Expected | None
    decided: datetime | None
    ladders: tuple[Ladder, ...]
    charges: tuple[ChargeRow, ...]
    inside: tuple[asked_inside.Line, ...]
    cycles: tuple[wait_cycles.Drawn, ...]
    ways: tuple[Way, ...]
    timeline: tuple[Stretch, ...]
    progress: Progress | None
    evidence: tuple[Fact, ...]
    leftovers: tuple[str, ...]
    lineage: tuple[tuple[str, int], ...]
    terms: tuple[Term, ...]
    pruned: str
    attempt: int
    exit: str
    took: str
    limit: str
    held: str
    priority: int
    workers: int
    contained: bool
    same: datetime | None
    can_touch: bool
    can_raise: bool
    can_place: bool
    can_cancel: bool
    can_retry: bool
    can_resubmit: bool  # what somebody took is no command
    raised: Raised | None
    can_hold: bool
    can_release: bool

    @property
    def state_word(self) -> str:
        """Return the state as a tab's title says it."""
        return (
            self.outcome if self.finished else {"queued": "waiting", "admitted": "starting"}.get(self.state, self.state)
        )

    @property
    def finished(self) -> bool:
        """Return whether nothing on the page will change any more."""
        return self.state == State.FINISHED

    @property
    def version(self) -> str:
        """Return a digest of what is shown, but for the ages in checks that passed: those change each second."""
        return digest(replace(self, verdict=verdict.settled(self.verdict)))


@dataclass(frozen=True, slots=True)
class Private:
    """What only the owner and operators see; ``environment`` says that there are variables, not which."""

    command: str
    setup: str
    cwd: str
    environment: bool
    note: str
    container: str


def find(job_id: int) -> Job | None:
    """Return the job with its user and workload."""
    return Job.objects.select_related("user", "workload", "forecast", "array", "progress").filter(pk=job_id).first()


def private(user: AbstractBaseUser, job: Job) -> Private | None:
    """Return command, directory and note, None for whoever may not see them."""
    if not access.sees_private(user, job):
        return None
    command = "\n".join(str(part) for part in job.argv) if job.argv else job.command
    command = command if job.array_index is None else with_index(command, job.array_index)
    return Private(command, job.setup, job.cwd, bool(job.environment), job.note, _container(job))


def nobody_lacks(user: Any) -> str:
    """Return "": who has no account to run as is what services know."""
    return ""


def page(
    user: AbstractBaseUser, job: Job, no_account: Callable[[Any], str] = nobody_lacks, anyhow: float = 0.0
) -> JobPage:
    """Return the live part of the page as this user may see it; what would start it may be ``anyhow`` seconds old."""
    state = State(job.state)
    touch = access.may_touch(user, job)
    seen = verdict.of(job.decision)
    foretold = expected.of(job) if job.state == State.QUEUED else None
    names = dict(Device.objects.values_list("uuid", "name"))
    basis = job.basis or str(mapping(job.estimate).get("basis") or "")
    phases = timeline.of(job)
    queued, over = state is State.QUEUED, state is State.FINISHED
    return JobPage(
        id=job.pk,
        name=rows.label(job),
        owner=job.user.get_username(),
        state=job.state,
        outcome=wording.OUTCOMES.get(job.outcome, job.outcome),
        tone=_tone(job),
        words=rows.words(job),
        lead=_lead(job, names),
        sub=_sub(job, foretold),
        submitted=job.submitted_at,
        started=job.started_at,
        ended=job.ended_at,
        where=_where(job, names),
        basis=wording.rung(basis),
        chip=wording.rung_class(basis) if basis else "",
        verdict=seen,
        expected=foretold,
        decided=job.decided_at.replace(microsecond=0) if job.decided_at and not queued else None,
        ladders=ladder.ladders(job.estimate),
        charges=held.charges(job, names),
        inside=asked_inside.lines(job, names, may_revoke=access.at_least(user, Role.OPERATOR)),
        cycles=() if queued else wait_cycles.of(job),
        ways=remedy.ways(job, foretold, no_account, anyhow) if queued else (),
        timeline=phases,
        progress=progress.of(job),
        evidence=proof.facts(job.evidence, names, job.sentence),
        leftovers=proof.left_behind(job.leftovers),
        lineage=terms.lineage(job, REPEATS_SHOWN),
        terms=terms.lines(job),
        pruned=pruned.history(job),
        attempt=job.attempt,
        exit=_exit(job),
        took=wording.span(job.duration_s),
        limit=wording.span(job.time_limit_s) if job.time_limit_s else "",
        held=wording.held(job.held_by, job.held_until, job.held_why) if job.held_by else "",
        priority=job.priority,
        workers=job.workers,
        contained=bool(job.image),
        same=phases[-1].since if queued and phases else None,
        can_touch=touch,
        can_raise=access.at_least(user, Role.OPERATOR),
        can_place=touch and queued,
        can_cancel=touch and not over and job.stop_requested_at is None,
        can_retry=touch and over,
        can_resubmit=touch and over and job.kind != Kind.HOLD,
        raised=raised.of(job) if touch and over else None,
        can_hold=touch and queued and not job.held_by,
        can_release=touch and queued and bool(job.held_by),
    )


def _tone(job: Job) -> str:
    if job.state == State.FINISHED:
        return wording.outcome_tone(job.outcome)
    return {State.QUEUED: "wait", State.ADMITTED: "run", State.RUNNING: "run"}[State(job.state)]


def _lead(job: Job, names: dict[str, str]) -> str:
    """Return the one sentence that answers "what is with my job?"."""
    if job.state == State.FINISHED:
        return job.sentence or f"{wording.OUTCOMES.get(job.outcome, job.outcome).capitalize()}."
    if job.state == State.QUEUED:
        told = missing.sentence(job.decision) if job.code in missing.ROOM else ""
        return told or job.headline or "Waits for the next decision."
    if job.kind == Kind.HOLD:
        alone = "" if job.exclusive == Exclusive.NO else " alone"
        return f"{job.user.get_username()} has taken {_amount(job)}{_where(job, names)}{alone}."
    if job.state == State.ADMITTED:
        return f"Starting on {_where(job, names)}."
    return f"Running on {_where(job, names)}."


def _sub(job: Job, foretold: Expected | None) -> str:
    if job.state == State.QUEUED and foretold and not foretold.at:
        return foretold.why_none
    if job.kind == Kind.HOLD and job.state != State.FINISHED:
        return "It is given back by cancelling it, at the latest when its time is over."
    if job.state in (State.ADMITTED, State.RUNNING):
        needs = ladder.needs(job.estimate, len(job.devices))
        return needs and f"Estimated need: {needs}."
    return ""


def _amount(job: Job) -> str:
    """Return "8.0 GiB of " for a part of a device, "" for all of it."""
    amount = whole(mapping(mapping(job.charges).get(job.device)).get("granted"))
    return f"{gib(amount)} of " if amount else ""


def _where(job: Job, names: dict[str, str]) -> str:
    if not job.node:
        return ""
    devices = " + ".join(names.get(uuid, uuid) for uuid in job.devices)
    return f"{devices} of {job.node}" if devices else job.node


def _container(job: Job) -> str:
    """Return the container that a job runs in, in words."""
    if not job.image:
        return ""
    force = mapping(mapping(mapping(job.charges).get(RAM)).get("force"))
    by = mapping(force.get("evidence")).get("engine") or job.engine or "the first engine of its node"
    return f"container {job.image} by {by}"


def _exit(job: Job) -> str:
    if job.exit_signal is not None:
        return f"signal {job.exit_signal}"
    return f"exit code {job.exit_code}" if job.exit_code is not None else ""
