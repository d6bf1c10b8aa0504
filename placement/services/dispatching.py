"""Step 9: which admitted jobs have no runner yet, and which stops have not been passed on."""

from __future__ import annotations

from django.db.models import Q

from calibration import clock
from placement import snapshots
from placement.domain.jobs import ACTIVE, State
from placement.models import Job, Node
from placement.services import lifecycle, starting


def due(node: str) -> list[tuple[str, int, int]]:
    """Return (node, job, attempt) of admitted jobs to send now.

    Never sent ones of any node; those of this node again when they have had no claim for ``redispatch_seconds``.
    """
    knobs, _ = snapshots.knobs_now()
    now = clock.now()
    late = Q(node=node, dispatched_clock__lt=now - knobs.redispatch_seconds) | Q(node=node, dispatched_clock__gt=now)
    admitted = Job.objects.filter(Q(dispatched_clock=None) | late, state=State.ADMITTED, stop_requested_at=None)
    return [
        (job.node, job.pk, job.attempt)
        for job in admitted.order_by("admitted_clock", "id")
        if not (lifecycle.run_dir_of(job) / "control" / "claim").exists()
        or lifecycle.look(lifecycle.run_dir_of(job)).claim_dead
    ]


def sent(node: str, job_id: int, attempt: int) -> None:
    """Note when a start was sent, by the database's clock."""
    now = clock.now()
    Job.objects.filter(pk=job_id, attempt=attempt).update(dispatched_clock=now)
    Node.objects.filter(name=node).update(start_sent_clock=now)


def pass_on_stops(node: str) -> None:
    """Ask the runners of this node's jobs that somebody cancelled, without waiting for the next tick."""
    knobs, _ = snapshots.knobs_now()
    asked = Job.objects.filter(node=node, state__in=ACTIVE, stop_clock=None).exclude(stop_requested_at=None)
    for job in asked.select_related("user"):
        starting.make_run_dir(job)
        lifecycle.ask_now(job, knobs)
