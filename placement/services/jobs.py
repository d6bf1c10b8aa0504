"""What people do with jobs: submit, ask beforehand, cancel, retry, hold and release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError
from django.utils import timezone

from calibration import clock, rows
from placement import conditions, estimates, inside, snapshots
from placement.domain.admission.decision import Check, Verdict
from placement.domain.admission.prerequisites import never_under
from placement.domain.admission.wire import decision_json, estimate_json
from placement.domain.ending.streaks import HOLDER
from placement.domain.errors import Infeasible, NotFound, NotYours, Refused
from placement.domain.jobs import ACTIVE, Outcome, State
from placement.domain.planning.feasibility import could_ever, max_workers
from placement.domain.planning.plan import would
from placement.domain.submitting.submission import Submission
from placement.domain.world.conditions import Tie
from placement.domain.world.snapshot import Snapshot, Waiting
from placement.models import Job, Role
from placement.services import (
    accounts,
    arrays,
    audit,
    cycle_row,
    drafting,
    forecasting,
    groups,
    members,
    notices,
    secrets,
    tying,
)


@dataclass(frozen=True, slots=True)
class Preview:
    """What the gate would say of a submission right now; ``decision`` and ``estimate`` as in Job."""

    estimate: dict[str, Any]
    decision: dict[str, Any]
    fits_now: bool
    headline: str
    max_workers: int | None
    infeasible: bool


def submit(user: User, submission: Submission, *, form_key: str | None = None, repeats: Job | None = None) -> Job:
    """Store a submission and return its job (of an array the first); the same ``form_key`` again returns that one.

    ``repeats`` is the ended job that this one is run again for. Raise Refused (with a sentence per field), NotYours,
    or Infeasible: then nothing is stored.
    """
    if earlier := made_by(user, form_key):
        return earlier
    if submission.sweep:
        raise ValueError("a sweep makes many jobs: sweeps.submit() stores it")
    job = drafting.draft(user, submission)
    job.form_key = form_key or None
    if repeats is not None:
        job.retry_of, job.array, job.array_index = repeats, repeats.array, repeats.array_index
    snapshot = snapshots.take(without_jobs=True)
    waiting = waiting_of(job, snapshot, ())
    refuse_impossible(snapshot, waiting)
    job.estimate = estimate_json(waiting.estimate)
    try:
        with cycle_row.changing():
            named = tying.resolved(submission.after)
            if submission.array:
                arrays.store(job, submission.array, submission.array_limit)
            else:
                job.save(force_insert=True)
            tying.tie(job, named)
    except IntegrityError:
        earlier = made_by(user, form_key)
        if earlier is None:
            raise
        return earlier
    return job


def made_by(user: User, form_key: str | None) -> Job | None:
    """Return the job that a form made when it was sent before. Raise Refused where somebody else sent one like it."""
    job = Job.objects.filter(form_key=form_key).first() if form_key else None
    if job is not None and job.user_id != user.pk:
        raise Refused(
            "Somebody else sent a form with this form_key; nothing was submitted. Reload the page, or make one up."
        )
    return job


def preview(user: User, submission: Submission) -> Preview:
    """Return the estimate and the verdict that the submission would get at the end of today's queue."""
    job = drafting.draft(user, submission)
    snapshot = snapshots.take(no_account=accounts.problem)
    waiting = waiting_of(job, snapshot, tuple(one.tie for one in tying.resolved(submission.after)))
    impossible = why_never(snapshot, waiting)
    decision = would(snapshot, waiting)
    if decision.verdict is Verdict.WAIT:
        decision = replace(decision, planned=forecasting.ask(snapshot, waiting))
    return Preview(
        estimate=estimate_json(waiting.estimate),
        decision=decision_json(decision),
        fits_now=decision.verdict is Verdict.START,
        headline=impossible[0].sentence if impossible else decision.headline,
        max_workers=_most_workers(job, snapshot, waiting),
        infeasible=bool(impossible),
    )


def cancel(user: User, job_id: int) -> str:
    """Cancel a job: at once while it waits, else its node stops it and verifies that nothing is left."""
    job = own(user, job_id)
    now = timezone.now()
    who = user.get_username()
    with cycle_row.changing():
        waiting = Job.objects.filter(pk=job.pk, state=State.QUEUED)
        if waiting.update(
            state=State.FINISHED,
            outcome=Outcome.CANCELLED,
            sentence=f"Cancelled by {who} while it waited.",
            stop_reason="cancel",
            stop_by=who,
            stop_requested_at=now,
            ended_at=now,
        ):
            said = f"#{job.pk} is cancelled; it had not started."
            notices.ended([job.pk])
        elif Job.objects.filter(pk=job.pk, state__in=ACTIVE, stop_requested_at=None).update(
            stop_reason="cancel", stop_by=who, stop_requested_at=now
        ):
            said = f"#{job.pk} is being stopped."
        else:
            job.refresh_from_db()
            if job.state == State.FINISHED:
                said = f"#{job.pk} had already ended: {job.outcome.replace('_', ' ')}."
            else:
                said = f"#{job.pk} is already being stopped."
    if job.user_id != user.pk:
        audit.record(user, "cancel job", f"#{job.pk} of {job.user.get_username()}")
    return said


def retry(
    user: User, job_id: int, at_least: Mapping[str, int] = MappingProxyType({}), *, form_key: str | None = None
) -> Job:
    """Submit a finished job again as it was, as a new job that names the old one; the same ``form_key`` makes one.

    ``at_least`` are bytes by kind ("ram", "vram") that are declared for it where less was; where device memory is
    reserved exactly, that is raised.
    """
    old = own(user, job_id)
    if earlier := made_by(old.user, form_key):
        return _repeating(earlier, old)
    # What is no amount stays what it is, to be refused as in any submission.
    more = {k: max(getattr(old, f"declared_{k}") or 0, n) if n > 0 else n for k, n in at_least.items()}
    if old.state != State.FINISHED:
        raise Refused(f"#{old.pk} is still {old.state}; cancel it first, or wait until it ends.")
    submission = Submission(
        name=old.name,
        note=old.note,
        command="" if old.workload else old.command,
        argv=tuple(old.argv) if old.argv else None,
        workload=old.workload.name if old.workload else "",
        params=old.params,
        setup=old.setup,
        cwd=old.cwd,
        environment=secrets.unseal(bytes(old.environment)) if old.environment else {},
        workers=old.workers,
        gpu=old.gpu,
        exclusive=old.exclusive,
        reserves=old.reserves,
        kind=old.kind,
        node=old.node_wanted,
        device=old.device_wanted,
        **drafting.group_of(old, more.pop("vram") if old.request().exact and more.get("vram", 0) > 0 else 0),
        declared_ram=more.get("ram", old.declared_ram),
        declared_vram=more.get("vram", old.declared_vram),
        time_limit_s=old.time_limit_s,
        priority=old.priority,
        image=old.image or "",
        engine=old.engine or "",
        after=tying.again(old),
        retry_times=old.retry_policy.get("times", 0),
        retry_on=tuple(old.retry_policy.get("on", ())),
        retry_wait_s=old.retry_policy.get("wait_s"),
    )
    job = _repeating(submit(old.user, submission, form_key=form_key, repeats=old), old)
    if old.user_id != user.pk:
        audit.record(user, "retry job", f"#{old.pk} of {old.user.get_username()}", new=job.pk)
    return job


def _repeating(job: Job, old: Job) -> Job:
    if job.retry_of_id != old.pk:
        raise Refused(f"This form_key made #{job.pk}, which does not repeat #{old.pk}. Make up another one.")
    return job


def hold(user: User, job_id: int, why: str = "") -> None:
    """Keep a waiting job from starting until it is released."""
    job = own(user, job_id)
    with cycle_row.changing():
        done = Job.objects.filter(pk=job.pk, state=State.QUEUED).update(
            held_by=user.get_username(), held_at=timezone.now(), held_why=why[:200]
        )
        if done:
            notices.held(job, user.get_username(), why[:200])
    if not done:
        raise Refused(f"#{job.pk} does not wait any more; only a waiting job can be held.")
    if job.user_id != user.pk:
        audit.record(user, "hold job", f"#{job.pk} of {job.user.get_username()}", why=why[:200])


def release(user: User, job_id: int) -> str:
    """Let a held job start again when there is room; where Tidegate held its group, the whole group."""
    job = own(user, job_id)
    if job.held_by == HOLDER:
        count = groups.release(user, job)
        return f"{count} {'job' if count == 1 else 'jobs'} of this group {'is' if count == 1 else 'are'} released."
    with cycle_row.changing():
        waits = Job.objects.filter(pk=job.pk, state=State.QUEUED)
        done = waits.update(held_by="", held_at=None, held_until=None, held_why="")
    if not done:
        raise Refused(f"#{job.pk} does not wait any more, so nothing holds it.")
    if job.user_id != user.pk:
        audit.record(user, "release job", f"#{job.pk} of {job.user.get_username()}")
    return f"#{job.pk} is released."


def waiting_of(job: Job, snapshot: Snapshot, ties: tuple[Tie, ...]) -> Waiting:
    """Return an unsaved job as the gate would see it."""
    _, instrument = snapshots.knobs_now()
    problem = accounts.problem(job.user)
    facts = conditions.Facts({0: ties} if ties else {}, knobs=snapshot.knobs)
    waits_for = facts.of(job, unsaved=True)
    later = inside.later([job]).get(0, ()) if snapshot.asked else ()
    return snapshots.waiting_of(
        job, snapshot.at, snapshot.wall, clock.epoch(), rows.version(), instrument, problem, waits_for, later
    )


def why_never(snapshot: Snapshot, waiting: Waiting) -> tuple[Check, ...]:
    """Return why it could never start (its owner's quota, or what each place gives at most), nothing when it could."""
    beyond = never_under(waiting.conditions.quota if waiting.conditions else None, waiting.request, waiting.estimate)
    if beyond is not None:
        return (beyond,)
    said = could_ever(snapshot, waiting.request, waiting.estimate)
    return () if any(check.ok for check in said) else said


def refuse_impossible(snapshot: Snapshot, waiting: Waiting) -> None:
    """Raise Infeasible where it could never start."""
    said = why_never(snapshot, waiting)
    if said:
        checks = [{"code": c.code.value, "sentence": c.sentence, "figures": dict(c.figures)} for c in said]
        raise Infeasible(said[0].sentence, checks)  # the first one sums up all places


def _most_workers(job: Job, snapshot: Snapshot, waiting: Waiting) -> int | None:
    version = rows.version()
    _, instrument = snapshots.knobs_now()
    workers = job.workers

    def estimate_for(count: int) -> Any:
        job.workers = count
        return estimates.estimate_of(job, version, instrument)

    try:
        return max_workers(snapshot, waiting, estimate_for)
    finally:
        job.workers = workers


def own(user: User, job_id: int) -> Job:
    """Return a job that the user may act on: their own, anybody's for operators; raise NotFound or NotYours."""
    job = Job.objects.select_related("user", "workload").filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"There is no job #{job_id}.")
    if job.user_id != user.pk and members.role_of(user) not in (Role.OPERATOR, Role.ADMIN):
        raise NotYours(f"#{job_id} is {job.user.get_username()}'s; only they and operators may do that.")
    return job
