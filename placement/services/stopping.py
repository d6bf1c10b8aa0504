"""Stop many jobs at once, with the service or without it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db.models import Case, QuerySet, When

from placement.domain.errors import Refused
from placement.domain.jobs import ACTIVE, State
from placement.models import Job
from placement.runner.status import Phase, look
from placement.runner.stop_request import request_stop
from placement.services import jobs as one
from placement.services import lifecycle

_OVER = (Phase.EXITED, Phase.LOST, Phase.NEW)


def unfinished() -> QuerySet[Job]:
    """Return every job that waits or runs, the waiting ones first so that none of them takes freed room."""
    waits = Case(When(state=State.QUEUED, then=0), default=1)
    return Job.objects.filter(state__in=[s.value for s in State if s is not State.FINISHED]).order_by(waits, "pk")


def stop(user: Any, jobs: QuerySet[Job], *, wait_s: float, say: Callable[[str], None]) -> int:
    """Cancel these jobs and ask their runners on this machine to end; return how many still run then.

    The runners are asked here and not by the loop, which may be down. Waits at most ``wait_s`` for them.
    """
    ids = [job.pk for job in jobs]
    for ident in ids:
        try:
            say(one.cancel(user, ident))
        except Refused as error:
            say(error.sentence)
    here = list(Job.objects.filter(pk__in=ids, state__in=ACTIVE, node=settings.NODE))
    for job in here:
        try:
            request_stop(lifecycle.run_dir_of(job), "cancel")
        except OSError as error:
            # No run directory: it has not begun, and the row keeps it from beginning.
            if not isinstance(error, FileNotFoundError):
                say(f"#{job.pk} cannot be asked to stop: {error.strerror}.")
    deadline = time.monotonic() + wait_s
    while True:
        left = [job for job in here if look(lifecycle.run_dir_of(job)).phase not in _OVER]
        if not left or time.monotonic() > deadline:
            return len(left)
        time.sleep(0.05)
