"""What of a finished job is not kept any more, as its page says it: silence would look like "there was nothing"."""

from __future__ import annotations

import os

from calibration import rows
from calibration.models import Sediment
from placement.domain.jobs import State
from placement.models import Job
from placement.selectors.wording import mapping


def history(job: Job) -> str:
    """Return that decisions and leases were let go, "" while they are kept."""
    if job.pruned_at is None:
        return ""
    after = f" {(job.pruned_at - job.ended_at).days} days after its end" if job.ended_at else ""
    return f"Its decisions and leases were removed{after}; the knob keep_history_days says how long they are kept."


def output(job: Job) -> str:
    """Return that the run directory of a finished job is gone, "" while it is there or where there was none."""
    if job.state != State.FINISHED or not job.run_dir or os.path.isdir(job.run_dir):
        return ""
    return "Its run directory was removed; the knobs keep_run_days and keep_run_gib say how long output is kept."


def peak(job: Job) -> str:
    """Return what to say of a peak of which nothing is stored: it was not measured, or newer runs took its place."""
    taught = mapping(job.evidence).get("feeds") in ("need", "lower_bound")
    of_key = rows.of_key(job.key_workload, job.key_params)
    if taught and of_key[rows.NEWEST - 1 : rows.NEWEST] and not Sediment.objects.filter(owner=f"job:{job.pk}").exists():
        return f"not kept any more: there are {rows.NEWEST} newer runs"
    return "not measured"
