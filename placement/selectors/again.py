"""What somebody submitted before, to be used again: a short list, and one of it as the fields of the form."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from calibration.domain.resources import GIB, MIB
from placement.domain.errors import NotFound, NotYours
from placement.domain.jobs import State
from placement.domain.submitting import sweeps
from placement.domain.submitting.arrays import with_index
from placement.domain.submitting.taken import Kind
from placement.models import Job
from placement.selectors import access, wording
from placement.selectors.wording import mapping

SHOWN = 10
_LOOKED_AT = 100  # jobs read at once to find distinct submissions
_LOOKS = 6
_READ = 60  # single jobs and arrays from which on no more are looked for


@dataclass(frozen=True, slots=True)
class Recent:
    """One earlier submission, however many jobs it made. ``many`` says so: "sweep of 24"."""

    id: int
    words: str
    workload: bool
    many: str
    at: datetime
    word: str
    tone: str


@dataclass(frozen=True, slots=True)
class Again:
    """An earlier submission as texts of the form's fields. ``variables``: its owner may keep them, sealed as they are.

    ``left_out`` says in a sentence what is not taken over.
    """

    job: int
    many: bool
    workload: str
    fields: dict[str, Any]
    variables: bool
    left_out: str


def recent(user: AbstractBaseUser) -> tuple[Recent, ...]:
    """Return this user's last distinct submissions, newest first; of the same command or workload the newest."""
    picked: dict[object, int] = {}
    newest = Job.objects.filter(user_id=user.pk, retry_number=0).exclude(kind=Kind.HOLD).order_by("-id")
    found = newest
    for _ in range(_LOOKS):
        some = list(found.values_list("pk", "array_id", "array_index")[:_LOOKED_AT])
        for job, array, _index in some:
            picked.setdefault(("array", array) if array else job, job)
        if len(some) < _LOOKED_AT or len(picked) >= _READ:
            break
        # Members of an array have numbers in a row: a large one is stepped over.
        last, array, index = some[-1]
        found = newest.filter(pk__lt=last - (index or 0) if array else last)
    rows = (
        Job.objects.filter(pk__in=list(picked.values())[: 2 * _READ])
        .select_related("array", "workload")
        .order_by("-pk")
    )
    return tuple(_distinct(rows.defer("decision", "estimate", "evidence", "environment", "members")))


def _distinct(rows: Iterable[Job]) -> Iterable[Recent]:
    seen: set[object] = set()
    for job in rows:
        sweep = mapping(job.array.sweep) if job.array else {}
        command = str(sweep.get("command") or job.command)
        words = shlex.join(job.argv) if job.argv else command
        known = (job.workload_id, str(job.params)) if job.workload_id and not sweep else (job.workload_id, words)
        if known in seen:
            continue
        seen.add(known)
        over = job.state == State.FINISHED
        yield Recent(
            id=job.pk,
            words=_workload_words(job) if job.workload else words,
            workload=job.workload is not None,
            many="" if job.array is None else f"{'sweep' if sweep else 'array'} of {job.array.size:,}",
            at=job.submitted_at,
            word=wording.OUTCOMES.get(job.outcome, job.outcome) if over else _STATES.get(job.state, job.state),
            tone=wording.outcome_tone(job.outcome) if over else "wait" if job.state == State.QUEUED else "run",
        )
        if len(seen) == SHOWN:
            return


_STATES = {"queued": "waiting", "admitted": "starting"}


def _workload_words(job: Job) -> str:
    name = job.workload.name if job.workload else ""
    axes = mapping(job.array.sweep).get("axes") if job.array else None
    if axes:
        return f"{name} {', '.join(axes)}"
    shown = ", ".join(f"{key}={value}" for key, value in mapping(job.params).items())
    return f"{name} {shown}".strip()


def of(user: AbstractBaseUser, job_id: int, whole: bool) -> Again:
    """Return a job as the form's fields, with ``whole`` the array or sweep that it is of. Raise NotFound, NotYours."""
    known = Job.objects.select_related("array", "workload", "user").filter(pk=job_id) if job_id < 2**63 else None
    job = known.first() if known is not None else None
    if job is None:
        raise NotFound(f"There is no job #{job_id}.")
    if not access.sees_private(user, job):
        raise NotYours(f"#{job_id} is {job.user.get_username()}'s; only they and operators see what it ran.")
    many = whole and job.array is not None
    own = job.user_id == user.pk
    left = [] if own or not job.environment else [f"its variables, which {job.user.get_username()} alone may use again"]
    if job.tied:
        left.append("the jobs that it waited for")
    fields = {**_fields(job), **(_many(job) if many else {})}
    fields["name"] = "" if _is_start(fields["name"], fields["command"]) else fields["name"]
    return Again(
        job=job.pk,
        many=many,
        workload=job.workload.name if job.workload else "",
        fields=fields,
        variables=own and bool(job.environment),
        left_out=" and ".join(left),
    )


def _fields(job: Job) -> dict[str, Any]:
    command = shlex.join(job.argv) if job.argv else job.command
    policy = mapping(job.retry_policy)
    return {
        "name": job.name,
        "note": job.note,
        "command": "" if job.workload else with_index(command, job.array_index) if job.array else command,
        **{f"param_{name}": value for name, value in mapping(job.params).items() if job.workload},
        "cwd": job.cwd,
        "setup": job.setup,
        "workers": job.workers,
        "gpu": job.gpu,
        "exclusive": job.exclusive,
        "reserves": job.reserves,
        "node": job.node_wanted,
        "device": job.device_wanted,
        **group(job),
        "declared_ram": amount_text(job.declared_ram),
        "declared_vram": amount_text(job.declared_vram),
        "time_limit_s": seconds_text(job.time_limit_s),
        "priority": job.priority,
        "image": job.image or "",
        "engine": job.engine or "",
        "retry_times": policy.get("times", ""),
        "retry_on": ", ".join(policy.get("on", ())).replace("_", " "),
        "retry_wait_s": ""
        if policy.get("wait_s") is None
        else seconds_text(policy["wait_s"])
        if policy["wait_s"]
        else "0",
    }


def group(job: Job) -> dict[str, Any]:
    """Return how many devices a job asks for, of which sort, and what it reserves of them, as the form's fields."""
    asked = job.request()
    several = job.gpu == "group"
    return {
        "min_devices": str(asked.min_devices) if several else "",
        "max_devices": str(asked.max_devices) if several else "",
        "prefer_max": asked.prefer_max,
        "memory": "exact" if asked.exact else "auto",
        "per_device_memory": amount_text(asked.per_device_memory),
        "group_memory": amount_text(asked.group_memory),
        "uneven": not asked.even,
        "device_kind": (asked.kind or "").lower(),
        "backend": (asked.backend or "").lower(),
    }


def _many(job: Job) -> dict[str, Any]:
    array = job.array
    assert array is not None
    found: dict[str, Any] = {"array_limit": array.limit or "", "name": array.name}
    sweep = mapping(array.sweep)
    if not sweep:
        typed = shlex.join(job.argv) if job.argv else job.command
        return {**found, "array": array.size, "command": "" if job.workload else typed}
    axes = {name: tuple(map(str, values)) for name, values in mapping(sweep.get("axes")).items()}
    command = shlex.join(sweep["argv"]) if sweep.get("argv") else str(sweep.get("command") or "")
    found |= {"command": command, "sweep": sweeps.as_text(axes), "sweep_same": ", ".join(sweep.get("same") or ())}
    return {**found, **{f"param_{name}": value for name, value in mapping(sweep.get("params")).items() if job.workload}}


def _is_start(name: str, command: str) -> bool:
    """Return whether a name is what the form makes of a command by itself."""
    line = next((line.strip() for line in command.splitlines() if line.strip()), "")
    return name in (line, f"{line[:59]}…")


def amount_text(amount: int | None) -> str:
    """Return bytes as text that means exactly these bytes."""
    if amount is None:
        return ""
    for unit, size in (("GiB", GIB), ("MiB", MIB)):
        if amount % size == 0:
            return f"{amount // size} {unit}"
    return f"{amount} B"


def seconds_text(seconds: float | None) -> str:
    """Return seconds as text that the form's fields take back."""
    if seconds is None:
        return ""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds % size == 0:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:g} s"
