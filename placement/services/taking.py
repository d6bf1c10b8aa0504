"""A person takes a device, part of one, or a machine for a limited time: a job that waits, in the same queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from calibration.domain.resources import MOST
from calibration.domain.samples import Identity, Reading
from placement import snapshots
from placement.domain.declaring.declarations import folded
from placement.domain.errors import Refused
from placement.domain.jobs import State
from placement.domain.knobs import Knobs
from placement.domain.notices import Kind as NoticeKind
from placement.domain.submitting.submission import Submission
from placement.domain.submitting.taken import RAM_OF_ITS_OWN, Kind, Wish, idle
from placement.models import Device, Job, Node
from placement.services import accounts, audit, jobs, lifecycle, notices
from placement.services.notices import News

_BEHIND = 5.0  # seconds
_NOTED_EVERY = timedelta(seconds=60)


def take(user: Any, wish: Wish) -> Job:
    """Put a hold into the queue and return its job; it begins when it starts. Raise Refused with a sentence."""
    knobs, _ = snapshots.knobs_now()
    longest = knobs.taken_hours * 3600
    if not 60 <= wish.seconds <= longest:
        said = (
            f"Take it for 1 minute to {knobs.taken_hours:g} hours (the knob taken_hours), not {wish.seconds / 3600:g}."
        )
        raise Refused(said, {"hours": said})
    name = _name(wish)
    if wish.bytes is not None and wish.bytes <= 0:
        raise Refused("Take more than 0 bytes, or the device alone.", {"size": "Above 0; empty: the device alone."})
    if wish.bytes is not None and not wish.device:
        said = "A machine is taken whole: leave the amount out, or say of which device."
        raise Refused(said, {"size": said})
    if wish.bytes is not None and wish.bytes > MOST:
        raise Refused(said := f"{wish.bytes:,} bytes cannot be taken: {MOST:,} are the most.", {"size": said})
    roots = [str(root) for root in settings.ALLOWED_ROOTS]
    job = jobs.submit(
        user,
        Submission(
            name=f"hold of {name}",
            note=wish.why[:500],
            argv=("sleep", f"{wish.seconds:.0f}"),
            cwd="/tmp" if "/tmp" in roots or not roots else roots[0],
            gpu="one" if wish.device else "none",
            exclusive="machine" if not wish.device else "device" if wish.bytes is None else "no",
            node=wish.node,
            device=wish.device,
            declared_vram=wish.bytes,
            declared_ram=RAM_OF_ITS_OWN,
            time_limit_s=wish.seconds + _BEHIND,  # plans go by it; its own end comes first
            kind=Kind.HOLD.value,
        ),
    )
    audit.record(user, "take", name, job=job.pk, hours=round(wish.seconds / 3600, 2), why=wish.why[:200])
    return job


def _name(wish: Wish) -> str:
    if not Node.objects.filter(name=wish.node).exists():
        raise Refused(said := f"There is no node {wish.node}.", {"node": said})
    if not wish.device:
        return wish.node
    there = list(Device.objects.filter(node__name=wish.node, retired=False))
    by_name = (one for one in there if folded(one.name) == folded(wish.device))
    device = next((one for one in there if one.uuid == wish.device), None) or next(by_name, None)
    if device is None:
        raise Refused(said := f"There is no device {wish.device} on {wish.node}.", {"device": said})
    return device.name if wish.bytes is None else f"{wish.words} of {device.name}"


def account_of(job: Job) -> str:
    """Return the name of the account whose processes count for a person's hold."""
    found, _ = accounts.account_for(job.user)
    return str(found["name"]) if found else accounts.worker_name()


def theirs(
    jobs_: Iterable[Job],
    reading: Reading,
    marker_of: Callable[[int], str | None],
    container_of: Callable[[str], str | None],
) -> dict[int, frozenset[Identity]]:
    """Return by hold the processes of its person's account on its device, but for those that say whose they are.

    What runs below another job, or in its control group, is that job's whatever this says.
    """
    found: dict[int, frozenset[Identity]] = {}
    for job in jobs_:
        pool = reading.pools.get(job.device)
        if job.kind != Kind.HOLD or job.state != State.RUNNING or pool is None or not job.device:
            continue
        account = account_of(job)
        samples = (reading.processes.get(pid) for pid, amount in pool.processes if amount != 0)
        found[job.pk] = frozenset(
            Identity(reading.boot_id, one.pid, one.start_ticks)
            for one in samples
            if one is not None and one.user == account and not marker_of(one.pid) and not container_of(one.cgroup)
        )
    return found


def look(jobs_: Iterable[Job], knobs: Knobs) -> None:
    """Note which holds are in use, tell of those that soon end, and end those that nothing has used for so long."""
    now = timezone.now()
    for job in jobs_:
        if job.kind != Kind.HOLD or job.state != State.RUNNING or job.stop_requested_at is not None:
            continue
        _soon_over(job, now, knobs.taken_warning_minutes * 60)
        if not job.device:
            continue
        if job.charges.get(job.device, {}).get("unread"):
            continue  # nobody can tell whether it is used, so its time alone ends it
        last = max(filter(None, (job.started_at, job.taken_used_at)), default=now)
        if job.used.get(job.device) or job.used.get(job.device, 0) is None:
            if job.taken_used_at is None or now - job.taken_used_at >= _NOTED_EVERY:
                Job.objects.filter(pk=job.pk).update(taken_used_at=now)
            continue
        found = idle((now - last).total_seconds(), knobs.taken_idle_minutes * 60, knobs.taken_warning_minutes * 60)
        if found.ends:
            said = f"Nothing of {job.user.get_username()} has used it for {found.since / 60:.0f} min, so it ends."
            lifecycle.stop_for(job, "unused", said, {"idle_s": round(found.since)})
        elif found.warn and not job.evidence.get("soon_over") and job.evidence.get("warned_at") != last.isoformat():
            _warn(job, last.isoformat(), found.left)


def _soon_over(job: Job, now: datetime, warning: float) -> None:
    """Announce once that the time of a hold is nearly over: so many seconds before, of a short one half its time."""
    if job.started_at is None or job.time_limit_s is None or job.evidence.get("soon_over"):
        return
    whole = job.time_limit_s - _BEHIND
    left = whole - (now - job.started_at).total_seconds()
    if 0 < left <= min(warning, whole / 2):
        said = f"Its time is over in {_minutes(left)}. What you run there goes on then, and others may start beside it."
        _announce(job, "soon_over", True, said)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"


def _warn(job: Job, at: str, left: float) -> None:
    """Announce once that a hold soon ends unused."""
    said = f"Nothing has used it; it ends in {left / 60:.0f} min unless something of yours does."
    _announce(job, "warned_at", at, said)


def _announce(job: Job, mark: str, value: object, sentence: str) -> None:
    job.evidence = {**job.evidence, mark: value}
    Job.objects.filter(pk=job.pk).update(evidence=job.evidence)
    notices.tell([News(job.user_id, NoticeKind.HOLD_ENDS, f"#{job.pk} {job.name} soon ends", sentence, job.pk)])


def words(job: Job) -> list[str]:
    """Return what stands beside a hold: that it soon ends, unused or because its time is over."""
    if job.kind != Kind.HOLD:
        return []
    if job.evidence.get("soon_over"):
        return ["soon ends: its time is nearly over; what runs there goes on, and others may start beside it"]
    if job.evidence.get("warned_at") and not job.used.get(job.device):
        return [f"soon ends: nothing of {job.user.get_username()} uses it"]
    return []
