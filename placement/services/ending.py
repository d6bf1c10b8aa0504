"""How an attempt ended: its outcome from the evidence, its row, its leases, and what is learned from it."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import DatabaseError, OperationalError, transaction
from django.utils import timezone

from calibration import clock
from calibration.domain.deaths import Death
from calibration.domain.knobs import Knobs as InstrumentKnobs
from calibration.domain.samples import Attribution
from placement.domain.containing import containers
from placement.domain.ending.outcomes import Evidence, Verdict, decide_outcome
from placement.domain.ending.postmortem import Blame, Finding
from placement.domain.jobs import ACTIVE, Outcome, State
from placement.domain.knobs import Knobs
from placement.domain.submitting.taken import Kind, of_hold
from placement.domain.world import reservations
from placement.models import Job, Lease
from placement.runner.record import STARTED, ExitRecord
from placement.runner.status import RunStatus
from placement.services import aftermath, capping, cycle_row, evidence, holding, notices, postmortems
from placement.services.capping import run_dir_of
from placement.services.learning import Windows
from placement.services.strays import Strays
from placement.services.strays import ended as stray_words

log = logging.getLogger(__name__)
_TOGETHER = 32  # ends of one transaction: it holds the only write lock of SQLite


@dataclass(frozen=True, slots=True)
class Ended:
    """A job that ended in this tick, and the pools whose level may still fall."""

    job: Job
    pools: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """What one look at a node brings to all its jobs; ``at`` is the reading's monotonic second."""

    windows: Windows
    at: float
    knobs: Knobs
    instrument: InstrumentKnobs
    device_totals: Mapping[str, int | None]
    reserved: Mapping[str, int | None] = field(default_factory=dict)
    seen: tuple[float, Attribution] | None = None  # the unix second of the reading, and whose what was
    strays: Strays | None = None  # containers that are nobody's, though a job may have started them

    def gives(self, device: str) -> dict[str, int]:
        """Return the bytes that a device gives to one run at most, by kind; nothing where its size is unknown."""
        total = self.device_totals.get(device)
        if not total:
            return {}
        return {"vram": total - (self.reserved.get(device) or 0) - reservations.floor_of("vram", total, self.knobs)}


@dataclass(frozen=True, slots=True)
class Ending:
    """An end as its records tell it, and what goes into the job's row."""

    job: Job
    record: ExitRecord | None
    verdict: Verdict
    receipt: Mapping[str, Any] | None
    at: datetime
    row: Mapping[str, Any]
    blamed: Finding | None = None
    tells: bool = True  # whether what was seen of it is all of it; what a container of its own took is not


def why_lost(status: RunStatus, run_dir: Path) -> str:
    started = status.started
    if started is None:
        return "its start record cannot be read"
    if started.boot_id != clock.boot_id():
        return "the node rebooted while it ran"
    if not (run_dir / "control" / STARTED).exists():
        return f"its records in {run_dir} were removed while it ran, so nobody can tell its exit code"
    return "its runner was killed and its processes are gone; nobody saw its exit code"


def judged(
    job: Job,
    record: ExitRecord | None,
    lost: str,
    seen: tuple[float, Attribution] | None = None,
    strays: Strays | None = None,
) -> Ending:
    """Return how an attempt ended, read from its records and the reading that saw it; nothing is stored yet."""
    run_dir = run_dir_of(job)
    told = max((cap for d in job.devices if (cap := job.charges.get(d, {}).get("cap")) is not None), default=None)
    receipt, refused_at = evidence.cap_receipt(run_dir, told) or (None, None)
    now = timezone.now()
    ended_at = _when(record.ended_at if record else None) or now
    age = None if refused_at is None else ended_at.timestamp() - refused_at
    group = evidence.group(run_dir)
    verdict = decide_outcome(_evidence(job, record, lost, receipt, age, run_dir, group))
    verdict = of_hold(verdict) if job.kind == Kind.HOLD else verdict
    blamed = postmortems.of(job, verdict, receipt, min(ended_at, now), seen, group)
    kept_evidence = {**job.evidence, "feeds": verdict.feeds}
    if verdict.memory:
        kept_evidence["memory"] = verdict.memory
    if blamed:
        kept_evidence["postmortem"] = postmortems.kept(blamed)
    if receipt:
        kept_evidence["cap_receipt"] = receipt
    if record:
        kept_evidence["exit"] = {
            "stopped_by": record.stopped_by,
            "killed": record.killed,
            "swept": record.swept,
            "max_rss_bytes": record.max_rss_bytes,
            "oom_kill_delta": record.oom_kill_delta,
            "trimmed_bytes": record.log.trimmed_bytes,
            "group": group,
        }
    elif group:
        kept_evidence["group"] = group
    if record and record.container:
        kept_evidence["container"] = evidence.container(run_dir, record)
    held = strays.held(job.pk) if strays else ""
    if held:
        kept_evidence["not_freed"] = held
    tells = bool(job.image) or not (containers.unkept(job.command, job.argv) or (strays and strays.has_client(job.pk)))
    row = {
        "state": State.FINISHED,
        "outcome": verdict.outcome,
        "sentence": f"{verdict.sentence} {_more(job, blamed)} {stray_words(held)}".strip()[:1000],
        "evidence": kept_evidence,
        "charges": capping.at_the_end(job),
        "exit_code": record.code if record else None,
        "exit_signal": record.signal if record else None,
        "started_at": job.started_at or _when(record.started_at if record else None),
        "ended_at": min(ended_at, now + timedelta(seconds=1)),
        "duration_s": record.duration_s if record else None,
        "run_dir": str(run_dir),
        "leftovers": [m._asdict() for m in record.leftovers] if record else job.leftovers,
        "unsupervised": False,
    }
    return Ending(job, record, verdict, receipt, ended_at, row, blamed, tells)


def store(endings: Sequence[Ending], round_: Round) -> list[Ended]:
    """Store how jobs ended, up to ``_TOGETHER`` in one transaction; return those that had not been stored before.

    After a crowd each end in a transaction of its own kept the loop from everything else for seconds.
    """
    stored: list[Ended] = []
    for first in range(0, len(endings), _TOGETHER):
        some = endings[first : first + _TOGETHER]
        try:
            stored += _together(some, round_)
        except OperationalError:  # locked, or another's transaction came first: the next look sees them again
            raise
        except DatabaseError:
            if len(some) == 1:
                raise
            for one in some:  # a row that cannot be stored keeps nobody else from ending
                stored += _together([one], round_)
    return stored


def _together(endings: Sequence[Ending], round_: Round) -> list[Ended]:
    with cycle_row.changing():
        won = [ending.job for ending in endings if _alone(ending, round_)]
        _let_go(job.pk for job in won)
        notices.ended([job.pk for job in won])
    for job in won:  # not before: until the commit its peaks are nowhere else
        round_.windows.drop(job.pk)
    return [Ended(job, tuple(job.charges)) for job in won]


def _alone(ending: Ending, round_: Round) -> bool:
    """Store one end among others; what fails in it undoes nothing of theirs."""
    try:
        with transaction.atomic():
            return _end(ending, round_)
    except DatabaseError:
        raise
    except Exception:  # what one job left behind must not keep the others of the crowd from ending
        log.exception("the end of #%s cannot be stored", ending.job.pk, extra={"action": "end_failed"})
        return False


def _end(ending: Ending, round_: Round) -> bool:
    job, verdict = ending.job, ending.verdict
    if not Job.objects.filter(pk=job.pk, state__in=ACTIVE, attempt=job.attempt).update(**ending.row):
        return False
    kept = round_.windows.close(
        job,
        round_.at,
        ending.at,
        verdict.outcome.value,
        round_.instrument,
        died_of={verdict.memory: _death(verdict, job)} if verdict.memory and not _victim(ending) else {},
        receipt=_receipt_bytes(ending.receipt),
        device_total=round_.device_totals.get(job.device),
        duration=ending.record.duration_s if ending.record else None,
        kernel_peak=ending.record.max_rss_bytes if ending.record else None,
        most=round_.gives(job.device),
        tells=ending.tells,
    )
    capping.learn(job, kept.peaks.get("vram") if kept else None, ending.at)
    if verdict.outcome is not Outcome.COMPLETED:  # nothing follows from a success
        aftermath.of(job.pk)
    return True


def _evidence(
    job: Job,
    record: ExitRecord | None,
    lost: str,
    receipt: Mapping[str, Any] | None,
    receipt_age: float | None,
    run_dir: Path,
    group: Mapping[str, int] | None,
) -> Evidence:
    killed_by_nine = record is not None and (record.signal == 9 or record.code == 137)
    return Evidence(
        code=record.code if record else None,
        signal=record.signal if record else None,
        start_error=(record.start_error if record else None) or "",
        stopped_by=(record.stopped_by if record else None) or "",
        killed=record.killed if record else False,
        requested=job.stop_reason if job.stop_requested_at else "",
        requested_by=job.stop_by,
        # The counter is the whole machine's: it says something only of a run that was killed.
        oom_kill_delta=record.oom_kill_delta if record and killed_by_nine else None,
        group=group,
        container=evidence.container(run_dir, record) if record and record.container else None,
        cap_receipt=_receipt(receipt),
        receipt_age_s=receipt_age,
        driver_limit=evidence.driver_limit(run_dir) if job.device else None,
        log_tail=evidence.log_tail(run_dir),
        lost=lost or evidence.rebooted(record),
        watchdog=job.evidence.get("watchdog"),
        time_limit_s=job.time_limit_s,
        said=str((job.evidence.get(job.stop_reason) or {}).get("sentence") or ""),
        leftovers=len(record.leftovers) if record else 0,
    )


def _receipt(receipt: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if receipt is None:
        return None
    words = {"asked": "asked", "used": "held", "free": "device_free", "cap": "cap"}
    return {ours: receipt.get(theirs) for ours, theirs in words.items()}


def _victim(ending: Ending) -> bool:
    """Return whether others took what it lacked: then it needs no more than it was charged."""
    return ending.blamed is not None and ending.blamed.blame is Blame.VICTIM


def _more(job: Job, blamed: Finding | None) -> str:
    """Return what the finding adds to the sentence; the watchdog's own says already that it was past its grant."""
    if blamed is None:
        return ""
    if job.stop_reason == "watchdog":
        return blamed.told.partition(". ")[2]
    return blamed.told


def _death(verdict: Verdict, job: Job) -> Death:
    if verdict.outcome is Outcome.CAP_EXCEEDED:
        return "watchdog" if job.stop_reason == "watchdog" else "cap"
    return "room"


def _when(at: float | None) -> datetime | None:
    return None if at is None else datetime.fromtimestamp(at, UTC)


def _receipt_bytes(receipt: Mapping[str, Any] | None) -> int | None:
    cap = receipt.get("cap") if receipt else None
    return cap if isinstance(cap, int) else None


def release(job: Job) -> None:
    """Release whatever a job still leases."""
    _let_go([job.pk])


def _let_go(jobs: Iterable[int]) -> None:
    """Release what jobs hold that have ended; what an artifact of theirs holds stays for as long as it may."""
    ids = list(jobs)
    Lease.objects.filter(job__in=ids, released_at=None, request=None).update(released_at=timezone.now())
    holding.over(ids)
