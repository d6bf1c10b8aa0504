"""The leases of running jobs follow what their charges hold; a promise stays as granted."""

from __future__ import annotations

from collections.abc import Sequence

from placement.models import Job, Lease


def follow(changed: Sequence[Job]) -> None:
    """Bring the live leases of jobs whose charges changed in line with them."""
    held = {
        (job.pk, pool): max(charge["granted"], charge["held"] - charge.get("inside", 0))
        for job in changed
        for pool, charge in job.charges.items()
    }
    leases = list(Lease.objects.filter(job__in=changed, released_at=None, promise=False, request=None))
    moved = [lease for lease in leases if held.get((lease.job_id, lease.pool), lease.bytes) != lease.bytes]
    for lease in moved:
        lease.bytes = held[lease.job_id, lease.pool]
    if moved:
        Lease.objects.bulk_update(moved, ["bytes"], batch_size=200)
