"""What a running job asks for, gives back and is told: rows that wait. Nothing is granted here; the cycle does that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from typing import Any

from django.db import IntegrityError
from django.db.models import Max
from django.utils import timezone

from calibration import rows
from placement import estimates, snapshots
from placement.domain.admission.inside import Never, could_serve, read
from placement.domain.errors import NotFound, Refused
from placement.domain.jobs import ACTIVE
from placement.domain.world.asks import Ask
from placement.models import InsideRequest, InsideSession, Job, RequestState
from placement.services import cycle_row, granting, holding, later, scopes

LONGEST_ARTIFACT_S = 30 * 86400.0
MOST_OPEN = 1000  # requests of one job that wait or are held


@dataclass(frozen=True, slots=True)
class Step:
    """The step of a program that asks; ``restartable``: it can be run again from its first line."""

    key: str
    step: str = ""
    iteration: int = 0
    execution: int = 1
    restartable: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a job. ``told`` is the ask as it came; ``sees`` what its process sees, None: not known."""

    key: str
    told: Mapping[str, Any]
    process: Mapping[str, Any] = field(default_factory=dict)
    step: Step | None = None
    index: int = 0
    sees: tuple[str, ...] | None = None


def ask(job: Job, call: Call) -> tuple[InsideRequest, bool]:
    """Return the row of a call and whether it is new; the same key again is the same row.

    What can never be granted is stored as refused, with the arithmetic. Raise Refused for what is no request.
    """
    known = _known(job, call.key)
    if known is not None:
        return known, False
    wanted = _read(job, call.told)
    row = InsideRequest(
        job=job,
        attempt=job.attempt,
        key=call.key,
        index=call.index,
        execution=call.step.execution if call.step else 1,
        ask=_kept(wanted),
    )
    scope = scopes.of_call(call.process, call.step.key if call.step else "")
    refusal = _devices(row, job, wanted, call.sees) or granting.never(row, wanted, scope)
    if refusal is not None:
        granting.refuse(row, refusal)
    try:
        with cycle_row.changing():
            if not Job.objects.filter(pk=job.pk, attempt=job.attempt, state__in=ACTIVE).exists():
                raise Refused(f"#{job.pk} has ended; it can ask for nothing more.")
            if InsideRequest.objects.filter(job=job, state__in=("waiting", "granted")).count() >= MOST_OPEN:
                raise Refused(f"#{job.pk} has {MOST_OPEN:,} requests open, which is the most; let go of some first.")
            row.session = holding.session(job, call.process, call.step)
            row.order = (Job.objects.aggregate(last=Max("pk"))["last"] or 0) + 1
            row.save(force_insert=True)
            if refusal is None:
                later.remember(job, wanted)
    except IntegrityError:
        known = _known(job, call.key)
        if known is None:
            raise
        return known, False
    return row, True


def _known(job: Job, key: str) -> InsideRequest | None:
    rows_ = InsideRequest.objects.select_related("session", "job")
    return rows_.filter(job=job, attempt=job.attempt, key=key).first()


def _read(job: Job, told: Mapping[str, Any]) -> Ask:
    try:
        if told.get("memory", "exact") == "auto":
            told = {**told, "group_bytes": _estimated(job)}
        return read(told)
    except (ValueError, TypeError) as error:
        raise Refused(str(error), {"ask": str(error)}) from None


def _estimated(job: Job) -> int:
    """Return the bytes that a job's runs are known to need of a device. Raise Refused where nobody knows."""
    _, instrument = snapshots.knobs_now()
    pool = estimates.estimate_of(job, rows.version(), instrument).pools.get("vram")
    if pool is None or pool.need is None:
        raise Refused(
            f"How much device memory #{job.pk} needs is not known yet; say an amount in place of auto.",
            {"ask": "nothing is known"},
        )
    return pool.need


def _kept(wanted: Ask) -> dict[str, Any]:
    return {name: value for name, value in asdict(wanted).items() if name not in ("node", "label")}


def _devices(row: InsideRequest, job: Job, wanted: Ask, sees: tuple[str, ...] | None) -> Never | None:
    """Put the devices that could serve on the row; return why none of them may where its process sees none."""
    node = snapshots.node_now(job.node)
    declared = () if node is None else node.devices
    could = could_serve(wanted, declared)
    able = [d for d in could if d.for_container("any" if job.image else "")]
    row.devices = []
    if could and not able:
        return Never(
            "not_visible",
            f"#{job.pk} runs in a container, and containers are given NVIDIA devices alone.",
            tuple(f"{d.name}: not given to containers" for d in could),
        )
    seen = able if sees is None else [d for d in able if d.uuid in sees]
    row.devices = [d.uuid for d in (seen or able)]
    if len(seen) >= wanted.min_devices or len(able) < wanted.min_devices:  # too few there are is told of all
        return None
    names = ", ".join(d.name for d in able if d not in seen)
    return Never(
        "not_visible",
        f"This process does not see {names} of {job.node}, so it could not use what it asks for there. Submit the job "
        'with "reserves" (or set it for its workload): then it is started with every device of its node visible.',
        tuple(f"{d.name}: {'seen' if d in seen else 'not seen'}" for d in able),
    )


def found(job: Job, request: int) -> InsideRequest:
    """Return a request of this job. Raise NotFound, also for another job's."""
    row = InsideRequest.objects.select_related("session", "job").filter(pk=request, job=job).first()
    if row is None:
        raise NotFound(f"#{job.pk} has no request {request}.")
    return row


def withdraw(job: Job, key: str, *, give_back: bool) -> InsideRequest:
    """End a request that waits; one that was granted before is let go only with ``give_back``. Raise NotFound."""
    row = _known(job, key)
    if row is None:
        raise NotFound(f"#{job.pk} has no request with this key.")
    with cycle_row.changing():
        waited = InsideRequest.objects.filter(pk=row.pk, state=RequestState.WAITING)
        if not waited.update(state=RequestState.WITHDRAWN, ended_at=timezone.now()) and give_back:
            holding.let_go([row.pk])
    row.refresh_from_db()
    return row


def release(job: Job, lease: int) -> InsideRequest:
    """Let go of what a request was granted; again is no mistake."""
    row = found(job, lease)
    with cycle_row.changing():
        holding.let_go([row.pk])
    row.refresh_from_db()
    return row


def outlive(job: Job, lease: int, artifact: str, seconds: float) -> InsideRequest:
    """Let an artifact hold on to a lease, for so many seconds at most, after whoever asked for it has ended."""
    row = found(job, lease)
    if not 0 < seconds <= LONGEST_ARTIFACT_S:
        raise Refused(f"An artifact holds a lease for up to {LONGEST_ARTIFACT_S:,.0f} seconds, not {seconds:g}.")
    until = timezone.now() + timedelta(seconds=seconds)
    with cycle_row.changing():
        done = InsideRequest.objects.filter(pk=row.pk, state=RequestState.GRANTED).update(
            artifact=artifact[:200], outlives=until
        )
    if not done:
        raise Refused(f"Lease {lease} is {row.state}; only one that is held can outlive its job.")
    row.refresh_from_db()
    return row


def end(job: Job, key: str, execution: int, outcome: str) -> None:
    """End a step: what it waits for is withdrawn; what it holds passes to its process where it finished."""
    session = InsideSession.objects.filter(job=job, attempt=job.attempt, key=key).first()
    if session is None or session.execution != execution:
        return  # it asked for nothing, or a later execution has begun
    with cycle_row.changing():
        holding.end_step(session, outcome)


def answer(row: InsideRequest) -> dict[str, Any]:
    """Return what the job is told of a request."""
    told: dict[str, Any] = {"id": row.pk, "state": row.state, "reasons": [], "lease": None, "refusal": None}
    told["revocation"] = None
    match row.state:
        case RequestState.WAITING:
            told["reasons"] = row.reasons.get("sentences") or ["It is looked at in the next cycle."]
        case RequestState.GRANTED:
            told["lease"] = {
                "id": row.pk,
                "group_bytes": row.ask.get("group_bytes", 0),
                "per_device_bytes": row.ask.get("per_device_bytes", 0),
                "members": row.members,
            }
        case RequestState.REFUSED:
            told["refusal"] = {"code": row.code, "sentence": row.said, "arithmetic": row.reasons.get("lines", [])}
        case RequestState.RELEASED:
            told["state"] = "withdrawn"
        case RequestState.REVOKED:
            told["revocation"] = holding.notice(row)
    told["notices"] = holding.notices(row.job)
    return told


__all__ = ["Call", "Step", "answer", "ask", "end", "found", "outlive", "release", "withdraw"]
