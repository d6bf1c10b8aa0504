"""Change where a waiting job stands in the queue."""

from __future__ import annotations

from django.contrib.auth.models import User

from placement.domain.errors import NotYours, Refused
from placement.domain.jobs import State
from placement.domain.submitting.submission import MOST_PRIORITY
from placement.models import Job, Role
from placement.services import audit, cycle_row, jobs, members


def change(user: User, job_id: int, value: int) -> str:
    """Give a waiting job another priority; who may cancel it may do that, above 0 operators alone.

    Raise NotFound, NotYours, or Refused where it does not wait any more. The sentence says what it was before.
    """
    job = jobs.own(user, job_id)
    check(user, value)
    with cycle_row.changing():
        done = Job.objects.filter(pk=job.pk, state=State.QUEUED).update(priority=value)
    if not done:
        raise Refused(f"#{job.pk} does not wait any more; only a waiting job has a place in the queue.")
    if job.user_id != user.pk:
        audit.record(
            user, "change priority", f"#{job.pk} of {job.user.get_username()}", before=job.priority, after=value
        )
    return f"#{job.pk} has priority {value}; it was {job.priority}."


def check(user: User, value: int) -> None:
    """Raise Refused or NotYours where this user may not give this priority to anything."""
    if not -MOST_PRIORITY <= value <= MOST_PRIORITY:
        raise Refused(f"A priority lies between {-MOST_PRIORITY} and {MOST_PRIORITY}; {value} does not.")
    if value > 0 and members.role_of(user) not in (Role.OPERATOR, Role.ADMIN):
        raise NotYours(f"Only operators and admins may raise a priority above 0; {value} was asked for.")
