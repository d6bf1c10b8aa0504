"""An operator takes back what a job was granted while it ran; its holder is told, and has some seconds to leave."""

from __future__ import annotations

from typing import Any

from placement import snapshots
from placement.domain.errors import NotFound, Refused
from placement.models import InsideRequest, RequestState
from placement.services import audit, cycle_row, holding, members


def revoke(user: Any, job_id: int, request_id: int) -> str:
    """Take a lease back, or refuse a request that waits. For operators."""
    members.need(user, "operate")
    row = InsideRequest.objects.select_related("job__user").filter(pk=request_id, job=job_id).first()
    if row is None:
        raise NotFound(f"#{job_id} has no request {request_id}.")
    seconds = snapshots.knobs_now()[0].revoke_seconds
    with cycle_row.changing():
        row.refresh_from_db()
        if row.state != RequestState.GRANTED or row.revoke_at is not None:
            raise Refused(f"Request {request_id} of #{job_id} is {row.state}; there is nothing to take back.")
        holding.revoke(row, audit.name_of(user), seconds)
    audit.record(user, "revoke lease", f"#{job_id} of {row.job.user.get_username()}", request=request_id)
    return f"#{job_id} was told: it has {seconds:g} s to leave the device, then its lease is gone."
