"""The job page as frozen values: what a person needs to know about one job, in the order they ask."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from calibration.domain.resources import gib
from calibration.domain.samples import RAM
from calibration.models import Sediment
from placement.domain.arrays import with_index
from placement.domain.jobs import State
from placement.models import Device, Job
from placement.selectors import access, expected, ladder, pruned, rows, tanks, terms, verdict, wording
from placement.selectors.expected import Expected
from placement.selectors.ladder import Ladder
from placement.selectors.queue import digest
from placement.selectors.terms import Term
from placement.selectors.verdict import Verdict
from placement.selectors.wording import listing, mapping, whole

HISTORY_SHOWN = 50
REPEATS_SHOWN = 50
LEARNED = {
    "need": "the need of the next run",
    "lower_bound": "a lower bound, where it used more than was known",
    "nothing": "nothing",
}


@dataclass(frozen=True, slots=True)
class ChargeRow:
    """What the job is charged of one pool. Percents are of the cap, None where there is nothing to draw.

    ``used`` is the use now; of a finished job it is the most that was seen.
    """

    pool: str
    used: str
    used_exact: str = field(repr=False)
    granted: str
    held: str
    at_start: str
    cap: str
    margin: str
    settled: bool
    note: str
    tone: str
    used_at: float | None
    granted_at: float | None


@dataclass(frozen=True, slots=True)
class Past:
    """One verdict of the past."""

    at: datetime
    verdict: str
    code: str
    headline: str


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
    history: tuple[Past, ...]
    evidence: tuple[tuple[str, str], ...]
    leftovers: tuple[str, ...]
    lineage: tuple[tuple[str, int], ...]
    terms: tuple[Term, ...]
    pruned: str
    attempt: int
    exit: str
    took: str
    limit: str
    held: str
    can_touch: bool
    can_cancel: bool
    can_retry: bool
    can_hold: bool
    can_release: bool

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


def find(job_id: int) -> Job | None:
    """Return the job with its user and workload."""
    return Job.objects.select_related("user", "workload", "forecast", "array").filter(pk=job_id).first()


def private(user: AbstractBaseUser, job: Job) -> Private | None:
    """Return command, directory and note, None for whoever may not see them."""
    if not access.sees_private(user, job):
        return None
    command = "\n".join(str(part) for part in job.argv) if job.argv else job.command
    command = command if job.array_index is None else with_index(command, job.array_index)
    return Private(command, job.setup, job.cwd, bool(job.environment), job.note)


def page(user: AbstractBaseUser, job: Job) -> JobPage:
    """Return the live part of the page as this user may see it."""
    state = State(job.state)
    touch = access.may_touch(user, job)
    seen = verdict.of(job.decision)
    foretold = expected.of(job) if job.state == State.QUEUED else None
    names = dict(Device.objects.values_list("uuid", "name"))
    basis = job.basis or str(mapping(job.estimate).get("basis") or "")
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
        charges=_charges(job, names),
        history=tuple(
            Past(h.at, h.verdict, h.code, h.headline) for h in job.history.defer("body").order_by("-at")[:HISTORY_SHOWN]
        ),
        evidence=_evidence(job.evidence),
        leftovers=tuple(_process(p) for p in listing(job.leftovers)),
        lineage=terms.lineage(job, REPEATS_SHOWN),
        terms=terms.lines(job),
        pruned=pruned.history(job),
        attempt=job.attempt,
        exit=_exit(job),
        took=wording.span(job.duration_s),
        limit=wording.span(job.time_limit_s) if job.time_limit_s else "",
        held=wording.held(job.held_by, job.held_until, job.held_why) if job.held_by else "",
        can_touch=touch,
        can_cancel=touch and not over and job.stop_requested_at is None,
        can_retry=touch and over,
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
        return job.headline or "Waits for the next decision."
    if job.state == State.ADMITTED:
        return f"Starting on {_where(job, names)}."
    return f"Running on {_where(job, names)}."


def _sub(job: Job, foretold: Expected | None) -> str:
    if job.state == State.QUEUED and foretold and not foretold.at:
        return foretold.why_none
    if job.state in (State.ADMITTED, State.RUNNING):
        return ladder.needs(job.estimate) and f"Estimated need: {ladder.needs(job.estimate)}."
    return ""


def _where(job: Job, names: dict[str, str]) -> str:
    if not job.node:
        return ""
    return f"{names.get(job.device, job.device)} of {job.node}" if job.device else job.node


def _charges(job: Job, names: dict[str, str]) -> tuple[ChargeRow, ...]:
    found = []
    peaks = _peaks(job) if job.state == State.FINISHED else None
    unknown = pruned.peak(job) if peaks is not None and not any(peaks.values()) else "not measured"
    for pool in sorted(mapping(job.charges), key=lambda p: p == RAM):
        charge = mapping(job.charges[pool])
        used = whole((mapping(job.used) if peaks is None else peaks).get(pool))
        granted = whole(charge.get("granted"))
        held, cap, margin = (whole(charge.get(name)) for name in ("held", "cap", "margin"))
        top = cap or granted
        near = ", extrapolated since the last exact reading" if charge.get("approximate") and peaks is None else ""
        mark = "≈ " if near else "" if peaks is None else "peak "
        found.append(
            ChargeRow(
                pool="RAM" if pool == RAM else names.get(pool, pool),
                used=f"{mark}{gib(used)}" if used is not None else unknown,
                used_exact=f"{used:,} bytes{near}" if used is not None else "",
                granted=gib(granted),
                held=gib(held),
                at_start=gib(whole(charge.get("at_start"))),
                cap=gib(cap) if cap is not None else "none",
                margin=gib(margin) if margin is not None else "–",
                settled=bool(charge.get("settled")),
                note=str(charge.get("note") or ""),
                tone=tanks.tone(job.pk),
                used_at=_percent(used, top),
                granted_at=_percent(granted, top),
            )
        )
    return tuple(found)


def _peaks(job: Job) -> dict[str, Any]:
    """Return the most that was seen of each pool, None where it was not watched or nothing of the run was kept."""
    kept = Sediment.objects.filter(owner=f"job:{job.pk}").order_by("-pk").first()
    peaks = mapping(kept.peaks if kept else None)
    return {RAM: peaks.get("ram"), job.device: peaks.get("vram")}


def _percent(part: int | None, top: int | None) -> float | None:
    return None if part is None or not top else min(100.0, round(part / top * 200) / 2)


def _evidence(raw: Any, prefix: str = "") -> tuple[tuple[str, str], ...]:
    """Return what is known of the end, nested parts spelled out; what is unknown or did not happen is left out."""
    found: list[tuple[str, str]] = []
    for key, value in mapping(raw).items():
        if key == "feeds":
            found.append(("what is learned", LEARNED.get(str(value), str(value))))
            continue
        name = f"{prefix}{str(key).replace('_', ' ')}"
        if isinstance(value, dict):
            found += _evidence(value, f"{name}: ")
        elif isinstance(value, bool):
            found += [(name, "yes")] if value else []
        elif isinstance(value, int) and value >= 2**20:
            found.append((name, f"{gib(value)} ({value:,} bytes)"))
        elif value not in (None, "", [], 0):
            found.append((name, ", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    return tuple(found)


def _process(raw: Any) -> str:
    body = mapping(raw)
    if not body:
        return str(raw)
    return ", ".join(f"{name} {value}" for name, value in body.items() if value not in (None, ""))


def _exit(job: Job) -> str:
    if job.exit_signal is not None:
        return f"signal {job.exit_signal}"
    return f"exit code {job.exit_code}" if job.exit_code is not None else ""
