"""Step 9: which admitted jobs have no runner yet, and which stops have not been passed on."""

from __future__ import annotations

from django.db.models import F, Q

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
    admitted = Job.objects.filter(state=State.ADMITTED, stop_requested_at=None).order_by("admitted_clock", "id")
    unclaimed = [job for job in admitted if job.node != node or _unclaimed(job)]
    if not any(job.node == node for job in unclaimed):
        _nothing_awaited(node)

    def is_due(job: Job) -> bool:
        sent_at = job.dispatched_clock
        if sent_at is None:
            return True
        return job.node == node and not 0 <= now - sent_at <= knobs.redispatch_seconds

    return [(job.node, job.pk, job.attempt) for job in unclaimed if is_due(job)]


def _unclaimed(job: Job) -> bool:
    run_dir = lifecycle.run_dir_of(job)
    return not (run_dir / "control" / "claim").exists() or lifecycle.look(run_dir).claim_dead


def _nothing_awaited(node: str) -> None:
    """Forget a start that was sent, not taken, and is not wanted any more: it proves nothing about the start worker."""
    untaken = Q(start_taken_clock=None) | Q(start_taken_clock__lt=F("start_sent_clock"))
    Node.objects.filter(untaken, name=node, start_sent_clock__isnull=False).update(start_sent_clock=None)


def sent(node: str, job_id: int, attempt: int) -> None:
    """Note when a start was sent, by the database's clock; a node keeps the time of the first one not taken yet."""
    now = clock.now()
    Job.objects.filter(pk=job_id, attempt=attempt).update(dispatched_clock=now)
    all_taken = Q(start_sent_clock=None) | Q(start_taken_clock__gte=F("start_sent_clock")) | Q(start_sent_clock__gt=now)
    Node.objects.filter(all_taken, name=node).update(start_sent_clock=now)


def pass_on_stops(node: str) -> None:
    """Ask the runners of this node's jobs that somebody cancelled, without waiting for the next tick."""
    knobs, _ = snapshots.knobs_now()
    asked = Job.objects.filter(node=node, state__in=ACTIVE, stop_clock=None).exclude(stop_requested_at=None)
    for job in asked.select_related("user"):
        starting.make_run_dir(job)
        lifecycle.ask_now(job, knobs)
