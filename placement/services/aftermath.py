"""What follows from the end of a job, in the transaction that stores it: another try, a hold on its like."""

from __future__ import annotations

from placement.models import Job
from placement.services import groups, retrying


def of(job_id: int) -> None:
    """Do what follows from an end. The caller holds the cycle row."""
    job = Job.objects.select_related("user", "user__member", "workload", "array").get(pk=job_id)
    retrying.consider(job)
    groups.consider(job)  # after it: the further try waits with the others
