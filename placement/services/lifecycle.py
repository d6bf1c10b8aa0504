"""What becomes of an admitted job: seen running, asked to stop, reaped with its true outcome, leases released."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import F
from django.utils import timezone

from calibration import clock
from placement.domain.jobs import ACTIVE, Outcome, State
from placement.domain.knobs import Knobs
from placement.domain.submitting.taken import Kind
from placement.models import Job, Lease
from placement.runner.identity import Identity, alive, holder
from placement.runner.members import kill_members, members
from placement.runner.record import EXIT, Started
from placement.runner.signals import signal_member
from placement.runner.status import Phase, RunStatus, look
from placement.runner.stop_request import SIGNALLED, request_stop
from placement.services import aftermath, cycle_row, engines, notices
from placement.services.ending import Ended, Ending, Round, judged, release, run_dir_of, store, why_lost

log = logging.getLogger(__name__)
_ASK_AGAIN = 5.0  # seconds between two requests to stop the same run


def reap(jobs: list[Job], now: Round) -> list[Ended]:
    """Bring the rows of this node's jobs in line with their run directories; return those that ended."""
    ended: list[Ended] = []
    over: list[Ending] = []
    for job in jobs:
        try:
            found = _reap(job, now)
            if isinstance(found, Ending):
                over.append(found)
            elif found is not None:
                ended.append(found)
        except DatabaseError:
            raise
        except Exception:  # what one job left in its run directory must not stop the loop for all others
            log.exception("#%s cannot be looked after", job.pk, extra={"action": "reap_failed"})
    return ended + store(over, now)


def _reap(job: Job, now: Round) -> Ended | Ending | None:
    status = _look(job)
    if status.started is not None and status.phase in (Phase.RUNNING, Phase.FINISHING):
        _let_go_on(status.started.runner)
    if job.stop_requested_at is not None and status.phase is not Phase.EXITED:
        _ask_to_stop(job, status, now.knobs)
        status = _look(job)
    if job.state == State.ADMITTED and status.started is not None:
        _mark_running(job, status)
    if job.image:
        _begin_time(job)
    if status.phase is Phase.EXITED and status.exit is not None:
        return judged(job, status.exit, "", now.seen, now.strays)
    if status.phase is Phase.LOST:
        lives, record = engines.last_word(job) if job.image else (False, None)
        if not lives:
            why = "" if record else why_lost(status, run_dir_of(job))
            return judged(job, record, why, now.seen, now.strays)
        status = replace(status, phase=Phase.UNSUPERVISED)
        _note_flags(job, status)
        if job.stop_requested_at is not None:
            _ask_to_stop(job, status, now.knobs)
        return None
    if status.phase is Phase.NEW:
        return _not_begun(job, status)
    _note_flags(job, status)
    if status.phase is Phase.UNSUPERVISED:
        _watch_unsupervised(job, now.knobs)
    return None


def _let_go_on(runner: Identity) -> None:
    """Continue a runner that somebody stopped: it alone hears a cancel and keeps the limits."""
    stat = holder(runner)
    if stat is not None and stat.state == "T":
        signal_member(runner, signal.SIGCONT)


def start_failed(job: Job, sentence: str) -> None:
    """End an admitted job that could not even be prepared, with the reason; its leases are released."""
    with cycle_row.changing():
        if Job.objects.filter(pk=job.pk, state=State.ADMITTED, attempt=job.attempt).update(
            state=State.FINISHED,
            outcome=Outcome.START_FAILED,
            sentence=sentence[:1000],
            ended_at=timezone.now(),
            run_dir=str(run_dir_of(job)),
        ):
            release(job)
            aftermath.of(job.pk)
            notices.ended([job.pk])


def directory_removed(job: Job) -> str:
    """End an attempt that was launched and whose run directory is gone before anybody saw it start."""
    sentence = (
        f"Lost: its run directory {run_dir_of(job)} was removed right after the start, so nobody can tell what it did."
    )
    with cycle_row.changing():
        if Job.objects.filter(pk=job.pk, state=State.ADMITTED, attempt=job.attempt).update(
            state=State.FINISHED, outcome=Outcome.LOST, sentence=sentence[:1000], ended_at=timezone.now()
        ):
            release(job)
            aftermath.of(job.pk)
            notices.ended([job.pk])
    return sentence


def stop_for(job: Job, reason: str, sentence: str, figures: Mapping[str, Any]) -> None:
    """Have the service itself stop a running job (watchdog, limits); the evidence stays with it."""
    Job.objects.filter(pk=job.pk, state__in=ACTIVE, stop_requested_at=None).update(
        stop_reason=reason,
        stop_by="tidegate",
        stop_requested_at=timezone.now(),
        evidence={**job.evidence, reason: {"sentence": sentence, **figures}},
    )
    job.refresh_from_db()


def ask_now(job: Job, knobs: Knobs) -> None:
    """Ask a job that is to be stopped at once, without waiting for the next tick."""
    _ask_to_stop(job, _look(job), knobs)


def know(begun: list[tuple[Job, Identity, Identity]]) -> None:
    """Put on the rows who runs, right after the launch: a job may remove its records before a tick reads them."""
    with transaction.atomic():
        for job, runner, child in begun:
            Job.objects.filter(pk=job.pk, state=State.ADMITTED, attempt=job.attempt).update(
                runner=runner._asdict(), child=child._asdict()
            )


def _mark_running(job: Job, status: RunStatus) -> None:
    started = status.started
    if started is None:
        return
    runner, child = started.runner._asdict(), started.child._asdict()
    job.runner, job.child, job.run_dir = runner, child, str(run_dir_of(job))
    job.started_at = datetime.fromtimestamp(started.at, UTC)
    job.started_clock = clock.now()
    if Job.objects.filter(pk=job.pk, state=State.ADMITTED, attempt=job.attempt).update(
        state=State.RUNNING,
        runner=runner,
        child=child,
        run_dir=job.run_dir,
        started_at=job.started_at,
        started_clock=job.started_clock,
    ):
        job.state = State.RUNNING


def _begin_time(job: Job) -> None:
    """Have a job's time begin with its container: limits, forecasts and pages leave the fetch of its image out."""
    made = engines.begun_at(job)
    if made is None or job.started_at is None or made <= job.started_at.timestamp() + 0.01:
        return
    job.started_at = datetime.fromtimestamp(made, UTC)
    job.started_clock = clock.now() - max(0.0, time.time() - made)
    Job.objects.filter(pk=job.pk, attempt=job.attempt).update(
        started_at=job.started_at, started_clock=job.started_clock
    )


def _ask_to_stop(job: Job, status: RunStatus, knobs: Knobs) -> None:
    now = clock.now()
    if job.stop_clock is not None and 0 <= now - job.stop_clock < _ASK_AGAIN:
        return
    run_dir = run_dir_of(job)
    grace = None
    if (
        status.phase is Phase.UNSUPERVISED
        and job.stop_clock is not None
        and now - job.stop_clock >= knobs.grace_seconds
    ):
        grace = 0.0
    if job.image and status.phase is Phase.UNSUPERVISED and grace is None and job.stop_clock is not None:
        return  # its engine was asked, and a second TERM means "at once" to many programs
    try:
        (run_dir / "control").mkdir(mode=0o700, parents=True, exist_ok=True)
        heard = request_stop(run_dir, job.stop_reason or "cancel", grace) == SIGNALLED
    except OSError as error:
        log.warning("#%s cannot be asked to stop: %s", job.pk, error, extra={"action": "stop_refused"})
        if status.started is None:
            return
        heard = False
    if not heard and job.runner and alive(runner := Identity(**job.runner)):
        signal_member(runner, signal.SIGTERM)  # its records are gone or another's; this alone ends a run, too
    if status.phase is Phase.UNSUPERVISED and not (job.image and grace is None):
        # Nobody adopts what left session and group before the runner died; only earlier readings know it.
        kill_members(_sampled(job), signal.SIGTERM if grace is None else signal.SIGKILL)
    if job.stop_clock is None:
        job.stop_clock = now
        Job.objects.filter(pk=job.pk).update(stop_clock=now)


def _sampled(job: Job) -> list[Identity]:
    """Return the processes that readings attributed to a job and that live still."""
    if job.kind == Kind.HOLD:  # what its person runs beside it is theirs
        return []
    known = (Identity(m["pid"], m["start_ticks"], m["boot_id"]) for m in job.members)
    return [identity for identity in known if alive(identity)]


def _look(job: Job) -> RunStatus:
    """Return where a job's attempt stands; it is not lost while anything that was seen of it lives."""
    status = look(run_dir_of(job))
    if job.runner and job.child:
        lives = alive(Identity(**job.runner)) or alive(Identity(**job.child))
        if status.phase is Phase.NEW or (lives and status.phase in (Phase.EXITED, Phase.LOST)):
            status = _by_row(job)  # its records were removed, or are another's
    if status.phase is Phase.UNSUPERVISED and status.exit is not None:
        # Its runner did not write it, and must not be believed to have once the command has ended.
        (run_dir_of(job) / "control" / EXIT).unlink(missing_ok=True)
        log.warning("#%s: an exit record was written while its command lives", job.pk, extra={"action": "forged_exit"})
    if status.phase is Phase.LOST and status.started is not None and _sampled(job):
        return replace(status, phase=Phase.UNSUPERVISED)
    return status


def _by_row(job: Job) -> RunStatus:
    """Return where a job stands whose records were removed while it ran: its row knows who runs."""
    runner, child = Identity(**job.runner), Identity(**job.child)
    at = job.started_at.timestamp() if job.started_at else 0.0
    started = Started(job.pk, job.attempt, runner, child, at, job.started_clock or 0.0)
    phase = Phase.RUNNING if alive(runner) else Phase.UNSUPERVISED if members(started) else Phase.LOST
    return RunStatus(phase=phase, started=started)


def _not_begun(job: Job, status: RunStatus) -> Ended | None:
    """A cancelled start ends here; a claimer that died before anything ran gives the job a new attempt."""
    if job.stop_requested_at is not None:
        # The request to stop lies in the run directory: whichever runner comes late does not let the command run.
        if (run_dir_of(job) / "control" / "stop.json").exists():
            with cycle_row.changing():
                if Job.objects.filter(pk=job.pk, state=State.ADMITTED, attempt=job.attempt).update(
                    state=State.FINISHED,
                    outcome=Outcome.CANCELLED,
                    sentence=f"Cancelled by {job.stop_by} before it started.",
                    ended_at=timezone.now(),
                    run_dir=str(run_dir_of(job)),
                ):
                    release(job)
                    notices.ended([job.pk])
                    return Ended(job, tuple(job.charges))
        return None
    if status.claim_dead:
        with cycle_row.changing():
            if Job.objects.filter(pk=job.pk, state=State.ADMITTED, attempt=job.attempt).update(
                attempt=F("attempt") + 1, dispatched_clock=None
            ):
                Lease.objects.filter(job=job, attempt=job.attempt, released_at=None).update(attempt=job.attempt + 1)
                log.warning(
                    "#%s: the runner of attempt %s died before the command ran; attempt %s follows",
                    job.pk, job.attempt, job.attempt + 1, extra={"action": "new_attempt"},
                )  # fmt: skip
    return None


def _note_flags(job: Job, status: RunStatus) -> None:
    changes: dict[str, Any] = {}
    if status.leader is not None:
        left = status.leader
        leader = {"code": left.code, "signal": left.signal, "at": left.at, "left_count": left.left_count}
        leftovers = [member._asdict() for member in left.left]
        if (job.leader_exit, job.leftovers) != (leader, leftovers):
            changes |= {"leader_exit": leader, "leftovers": leftovers}
    unsupervised = status.phase is Phase.UNSUPERVISED
    if job.unsupervised != unsupervised:
        changes["unsupervised"] = unsupervised
    if changes:
        for name, value in changes.items():
            setattr(job, name, value)
        Job.objects.filter(pk=job.pk).update(**changes)


def _watch_unsupervised(job: Job, knobs: Knobs) -> None:
    """Do for a job without a runner what the runner would have: keep its time limit."""
    if job.time_limit_s is None or job.started_clock is None or job.stop_requested_at is not None:
        return
    if job.image and engines.begun_at(job) is None:
        return  # its image is still being fetched
    if clock.now() - job.started_clock > job.time_limit_s:
        sentence = f"Ran for longer than its limit of {job.time_limit_s:g} s."
        stop_for(job, "time_limit", sentence, {"limit_s": job.time_limit_s})
