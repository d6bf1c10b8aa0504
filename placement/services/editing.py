"""Change what a waiting job asks for, so that it can start where it could not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User

from calibration.domain.resources import gib
from placement.domain.errors import Refused
from placement.domain.jobs import State
from placement.domain.submitting.group_keys import on_devices
from placement.domain.world.requests import Exclusive, Gpu, fewer
from placement.domain.world.text import devices, seconds
from placement.models import Job
from placement.services import audit, cycle_row, jobs


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for instead; what is left out stays as it is. Bytes."""

    workers: int | None = None
    declared_ram: int | None = None
    declared_vram: int | None = None
    time_limit_s: float | None = None
    devices: int | None = None  # of a group, at least
    per_device_memory: int | None = None
    group_memory: int | None = None
    beside: bool = False  # no longer alone on its device or machine
    anywhere: bool = False  # no longer on one named node or device


def change(user: User, job_id: int, wanted: Wanted) -> str:
    """Let a waiting job ask for less; who may cancel it may do that, and the audit keeps it.

    Raise NotFound, NotYours, or Refused where it does not wait any more or would ask for more than before: that is
    submitted anew. What it is learned under stays, but for the number of devices of a group.
    """
    job = jobs.own(user, job_id)
    fields, said = _fields(job, wanted)
    if not fields:
        raise Refused(f"Nothing of #{job.pk} would change.")
    before = {name: getattr(job, name) for name in fields}
    with cycle_row.changing():
        there = Job.objects.filter(pk=job.pk, state=State.QUEUED, workers=job.workers)
        same = there.values_list("devices_wanted", flat=True).first() == job.devices_wanted
        done = there.update(**fields) if same else 0
        if done:
            subject = f"#{job.pk} of {job.user.get_username()}"
            audit.record(user, "change job", subject, before=before, after=fields)
    if not done:
        raise Refused(f"#{job.pk} does not wait any more; only a waiting job can be changed.")
    return f"#{job.pk} now asks for {', '.join(said)}."


def _fields(job: Job, wanted: Wanted) -> tuple[dict[str, Any], list[str]]:
    """Return the columns that change, and what to say of each."""
    fields: dict[str, Any] = {}
    said: list[str] = []
    if wanted.workers is not None and wanted.workers != job.workers:
        if not 1 <= wanted.workers < job.workers:
            raise Refused(f"#{job.pk} has {job.workers} workers; it can have fewer, at least 1, not {wanted.workers}.")
        fields["workers"] = wanted.workers
        said.append(f"{wanted.workers} {'worker' if wanted.workers == 1 else 'workers'} instead of {job.workers}")
    for name, what in (("declared_vram", "device memory"), ("declared_ram", "RAM")):
        amount, old = getattr(wanted, name), getattr(job, name)
        if amount is None or amount == old:
            continue
        if old is None or not 0 < amount < old:
            raise Refused(f"#{job.pk} declared {gib(old)} of {what}; it can declare less, not {gib(amount)}.")
        fields[name] = amount
        said.append(f"{gib(amount)} of {what} instead of {gib(old)}")
    if (limit := wanted.time_limit_s) is not None and limit != job.time_limit_s:
        if limit < 1 or (job.time_limit_s is not None and limit > job.time_limit_s):
            raise Refused(f"#{job.pk} can get a time limit of 1 s or more, but not a longer one than it has.")
        fields["time_limit_s"] = float(limit)
        said.append(f"at most {seconds(limit)}")
    _group(job, wanted, fields, said)
    if wanted.beside and job.exclusive != Exclusive.NO:
        fields["exclusive"] = Exclusive.NO.value
        said.append("a place beside others")
    if wanted.anywhere and (job.node_wanted or job.device_wanted):
        fields |= {"node_wanted": "", "device_wanted": ""}
        said.append("any place")
    return fields, said


def _group(job: Job, wanted: Wanted, fields: dict[str, Any], said: list[str]) -> None:
    """Add what changes of a group's number of devices, and of the bytes that are reserved exactly."""
    asked, request = dict(job.devices_wanted or {}), job.request()
    if wanted.devices is not None and wanted.devices != request.min_devices:
        if job.gpu != Gpu.GROUP or not 1 <= wanted.devices < request.min_devices:
            raise Refused(f"#{job.pk} takes at least {request.min_devices} devices; it can take fewer, at least 1.")
        request = fewer(request, wanted.devices)
        asked |= {"min": request.min_devices, "max": request.max_devices}
        fields["key_params"] = on_devices(job.key_params, request)
        said.append(f"{devices(wanted.devices)} instead of {job.request().min_devices}")
    for name, key, of in (
        ("per_device_memory", "per_device", "each device"),
        ("group_memory", "group", "the group together"),
    ):
        amount, old = getattr(wanted, name), asked.get(key)
        if amount is None or amount == old:
            continue
        if old is None or not 0 < amount < old:
            raise Refused(f"#{job.pk} reserved {gib(old)} of {of}; it can reserve less, not {gib(amount)}.")
        asked[key] = amount
        said.append(f"{gib(amount)} reserved of {of} instead of {gib(old)}")
    if asked != (job.devices_wanted or {}):
        fields["devices_wanted"] = asked
