"""What people say about what was learned: what does not matter, which run was not typical, a pinned need."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from calibration import services as instrument
from calibration.domain.errors import BadAmount
from calibration.domain.resources import gib, parse_bytes
from calibration.models import Sediment
from placement.domain.errors import NotFound, NotYours, Refused
from placement.models import IrrelevantArgument, Job, Workload
from placement.services import audit, cycle_row, learning, members

KINDS = ("ram", "vram")
FORGOTTEN_AT_ONCE = 1000  # rows marked in one transaction


def argument(user: Any, job_id: int, name: str, matters: bool) -> str:
    """Say whether an argument of a typed command matters to its memory; it holds for what is submitted from now on."""
    job = _job(job_id)
    if job.user_id != user.pk and not members.may(user, "operate"):
        raise NotYours(f"#{job_id} is {job.user.get_username()}'s; only they and operators may do that.")
    if job.workload_id or not job.key_script or not 0 < len(name) <= 500:
        raise Refused("Only an argument of a typed command can be marked.")
    marks = IrrelevantArgument.objects.filter(script=job.key_script, argument=name)
    with cycle_row.changing():
        if matters:
            marks.delete()
        else:
            IrrelevantArgument.objects.get_or_create(
                script=job.key_script, argument=name, defaults={"who": audit.name_of(user)}
            )
        audit.record(user, "mark_argument", f"script {job.key_script}"[:200], argument=name, matters=matters)
    return f"{name} {'matters again' if matters else 'does not matter'} to what {job.key_script} needs, from now on."


def run(user: Any, job_id: int, *, atypical: bool | None = None, forgotten: bool | None = None) -> str:
    """Leave what a run taught out of estimates (not typical, or forgotten), or take that back. For operators."""
    members.need(user, "operate")
    job = _job(job_id)
    row = Sediment.objects.filter(owner=learning.owner(job)).first()
    if row is None:
        raise Refused(f"#{job_id} taught nothing: nothing was seen of it often enough.")
    return row_of(user, row, atypical=atypical, forgotten=forgotten)


def row_of(user: Any, row: Sediment, *, atypical: bool | None = None, forgotten: bool | None = None) -> str:
    """Mark one kept run, as ``run`` does; its job may be gone."""
    members.need(user, "operate")
    named = f"#{row.owner.removeprefix('job:')}" if row.owner.startswith("job:") else row.owner
    with cycle_row.changing():
        instrument.mark(row.pk, audit.name_of(user), timezone.now(), atypical=atypical, forgotten=forgotten)
        audit.record(user, "mark_run", named, atypical=atypical, forgotten=forgotten)
    return f"{named} {'counts' if not (atypical or forgotten) else 'does not count'} in estimates."


def forget_before(user: Any, workload: str, params: str, before: datetime) -> str:
    """Forget all that a key was taught before a time. For operators. In short steps: others write in between."""
    members.need(user, "operate")
    now, who, gone = timezone.now(), audit.name_of(user), 0
    if before > now:
        raise Refused("That time is still to come: only what has ended can be forgotten. Give one that is past.")
    until: datetime | None = before - timedelta(microseconds=1)
    while until is not None:
        with cycle_row.changing():
            step, oldest = instrument.forget_until(workload, params, until, who, now, FORGOTTEN_AT_ONCE)
            gone += step
            until = oldest if step == FORGOTTEN_AT_ONCE else None
            if until is None:
                told = before.isoformat(timespec="minutes")
                audit.record(user, "forget_runs", f"workload {workload}"[:200], before=told, runs=gone)
    return f"{gone:,} {'run is' if gone == 1 else 'runs are'} forgotten: what ended before counts no more."


def pin(user: Any, workload: str, kind: str, text: str | None, subject: str = "") -> str:
    """Set the number that a workload is charged, or take it away with None; with a subject for that script alone."""
    if user is not None:
        members.need(user, "operate")
    if kind not in KINDS:
        raise Refused(f"{kind!r} is no kind of memory; it is one of {', '.join(KINDS)}.")
    try:
        amount = None if text is None else parse_bytes(text)
    except BadAmount as error:
        raise Refused(str(error), {"amount": str(error)}) from error
    if amount is not None and not _is_known(workload):
        raise Refused(f"Nothing has been learned of a workload called {workload!r} yet.")
    with cycle_row.changing():
        instrument.pin(workload, kind, amount, audit.name_of(user), subject)
        audit.record(user, "pin", f"workload {workload}"[:200], kind=kind, bytes=amount)
    named = {"ram": "RAM", "vram": "device memory"}[kind]
    return f"{workload}: {named} is {'learned again' if amount is None else f'pinned at {gib(amount)}'}."


def _is_known(workload: str) -> bool:
    return Sediment.objects.filter(workload=workload).exists() or Workload.objects.filter(name=workload).exists()


def _job(job_id: int) -> Job:
    job = Job.objects.select_related("user").filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"There is no job #{job_id}.")
    return job
