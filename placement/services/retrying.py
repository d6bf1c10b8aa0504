"""Run a job again that ended badly, as a new job that names the old one; in the transaction of the end itself."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.utils import timezone

from calibration import rows
from calibration.domain.resources import gib
from calibration.domain.samples import RAM
from placement import estimates, snapshots
from placement.domain.admission.wire import estimate_json
from placement.domain.ending.retries import MEMORY_DEATHS, Policy, from_json, too_small
from placement.domain.jobs import Outcome
from placement.domain.planning.feasibility import could_ever
from placement.domain.world.conditions import ended
from placement.models import Job
from placement.services import members, postmortems, tying

log = logging.getLogger(__name__)
_COPIED = (
    *("name", "note", "user", "workload", "params", "command", "argv", "setup", "cwd", "environment", "workers"),
    *("gpu", "exclusive", "reserves", "kind", "node_wanted", "device_wanted", "devices_wanted"),
    *("declared_ram", "declared_vram", "time_limit_s", "priority"),
    *("key_workload", "key_fingerprint", "key_params", "key_script", "demo", "array", "array_index", "retry_policy"),
    *("image", "engine"),
)


def consider(job: Job) -> Job | None:
    """Store the further try of a job that has just ended, if its policy says so; return it.

    The caller holds the cycle row, so nobody sees the end without the try that follows it. Why none follows is kept
    with the job's evidence. A job that somebody asked to stop is not run again, however it ended.
    """
    policy = from_json(job.retry_policy)
    if policy is None or job.stop_reason == "cancel" or Outcome(job.outcome) not in policy.on:
        return None
    if not policy.covers(Outcome(job.outcome), job.retry_number):
        _keep(job, f"none: {job.retry_number} of {policy.times} further tries were made")
        return None
    if Job.objects.filter(retry_of=job, retry_number__gt=0).exists():
        return None
    again = _again(job, policy)
    refused = _refused(job, again)
    if refused:
        _keep(job, f"none: {refused}")
        return None
    again.save(force_insert=True)
    tying.follow(job, again)
    _keep(job, f"#{again.pk}, try {again.retry_number} of {policy.times}, after {policy.delay(again.retry_number):g} s")
    log.info("#%s is run again as #%s", job.pk, again.pk, extra={"action": "retry"})
    return again


def _again(job: Job, policy: Policy) -> Job:
    number = job.retry_number + 1
    copied: dict[str, Any] = {name: getattr(job, name) for name in _COPIED}
    delay = policy.delay(number)
    again = Job(
        **copied,
        retry_of=job,
        retry_number=number,
        not_before=timezone.now() + timedelta(seconds=delay) if delay else None,
    )
    _, instrument = snapshots.knobs_now()
    again.estimate = estimate_json(estimates.estimate_of(again, rows.version(), instrument))
    again.evidence = {"retry": _told(job, again)}
    return again


def _told(job: Job, again: Job) -> str:
    """Return what the further try follows, and after a memory death what was charged and what is needed now."""
    words = f"try {again.retry_number} after #{job.pk} {ended(Outcome(job.outcome))}"
    for kind, charged, need in _figures(job, again):
        words += f"; {gib(charged, need)} of {kind} were charged then, {gib(need, charged)} are asked for now"
    return words


def _refused(job: Job, again: Job) -> str:
    """Return why there is no point in another try, "" where there is."""
    if not members.may(job.user, "submit"):
        return f"{job.user.get_username()} may not submit any more"
    if Outcome(job.outcome) not in MEMORY_DEATHS or postmortems.is_victim(job):
        return ""  # a victim lacked nothing that a larger charge would give it
    figures = _figures(job, again)
    if figures and all(too_small(need, None, charged) for _, charged, need in figures):
        kind, charged, _ = figures[0]
        return f"the next run would be charged no more than the {gib(charged)} of {kind} that were too little"
    snapshot = snapshots.take(without_jobs=True)
    _, instrument = snapshots.knobs_now()
    said = could_ever(snapshot, again.request(), estimates.estimate_of(again, rows.version(), instrument))
    return "" if any(check.ok for check in said) else said[0].sentence


def _figures(job: Job, again: Job) -> list[tuple[str, int, int | None]]:
    """Return (kind of memory, charged then, asked for now) of what a run that died of memory was charged."""
    if Outcome(job.outcome) not in MEMORY_DEATHS or postmortems.is_victim(job):
        return []
    _, instrument = snapshots.knobs_now()
    pools = estimates.estimate_of(again, rows.version(), instrument).pools
    found = []
    for pool, charge in sorted(job.charges.items(), key=lambda pair: pair[0] == RAM):
        name, kind = ("RAM", "ram") if pool == RAM else ("device memory", "vram")
        estimate = pools.get(kind) if pool in (RAM, *job.devices) else None  # elsewhere it asked for more, or for none
        if estimate is not None and job.evidence.get("memory") in (kind, None):
            need = estimate.need if estimate.need is not None else estimate.at_least
            found.append((name, int(charge["at_start"]), need))
    return found


def _keep(job: Job, said: str) -> None:
    job.evidence = {**job.evidence, "further try": said}
    Job.objects.filter(pk=job.pk).update(evidence=job.evidence)
