"""What jobs asked for while they ran, for people: look, and take back."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from placement.api.jobs import done, found
from placement.api.nouns import Noun
from placement.api.shapes.inside import JobRequests
from placement.api.shapes.job import JobSaid
from placement.api.shapes.kinds import Id
from placement.models import Device, Role
from placement.selectors import asked_inside
from placement.services import revoking

noun = Noun("Jobs")


@noun.read("/jobs/{int:job_id}/requests", JobRequests)
def requests(request: HttpRequest, job_id: Id) -> dict[str, Any]:
    """Return what a job asked for while it ran, what waits or is held first."""
    names = dict(Device.objects.values_list("uuid", "name"))
    return {"requests": asked_inside.as_json(found(job_id), names)}


@noun.change("/jobs/{int:job_id}/requests/{int:request_id}/revoke", JobSaid, Role.OPERATOR)
def revoke(request: HttpRequest, job_id: Id, request_id: Id) -> dict[str, Any]:
    """Take back what was granted: its holder has some seconds to leave the device."""
    found(job_id)
    return done(request, job_id, revoking.revoke(request.user, job_id, request_id))
