"""Step 9: which admitted jobs have no runner yet, and which stops have not been passed on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from calibration import clock
from placement import snapshots
from placement.domain.jobs import ACTIVE, State
from placement.models import Job, Node
from placement.services import cycle_row, lifecycle, starting

Start = tuple[int, int]
"""A job and its attempt."""

UNDER_WAY = 200  # unclaimed starts; a start worker takes so many in about redispatch_seconds
AT_ONCE = 16  # starts in one message: what one process of the start worker launches while the others take the next


def due(node: str) -> list[tuple[str, list[Start]]]:
    """Return messages to send now: a node and the (job, attempt) of admitted jobs that it is to start.

    Never sent ones of any node; those of this node again when they have had no claim for ``redispatch_seconds``.
    No more than ``UNDER_WAY`` of this node are sent and unclaimed: a start worker that is behind takes them no sooner
    for being told more, and what it has would be told again and again.
    """
    admitted = Job.objects.filter(state=State.ADMITTED, stop_requested_at=None).order_by("admitted_clock", "id")
    rows = admitted.values_list("pk", "attempt", "node", "dispatched_clock")
    unclaimed = [row for row in rows if row[2] != node]
    unclaimed += islice((row for row in rows if row[2] == node and _unclaimed(*row[:2])), UNDER_WAY)
    if not any(where == node for _, _, where, _ in unclaimed):
        _nothing_awaited(node)
    patience, now = None, clock.now()
    wanted: dict[str, list[Start]] = {}
    for job, attempt, where, sent_at in unclaimed:
        if sent_at is not None:
            if where != node:
                continue
            if patience is None:
                patience = snapshots.knobs_now()[0].redispatch_seconds
            if 0 <= now - sent_at <= patience:
                continue
        wanted.setdefault(where, []).append((job, attempt))
    return [
        (where, starts[first : first + AT_ONCE])
        for where, starts in wanted.items()
        for first in range(0, len(starts), AT_ONCE)
    ]


def _unclaimed(job: int, attempt: int) -> bool:
    run_dir: Path = settings.RUNS / f"{job}-{attempt}"
    return not (run_dir / "control" / "claim").exists() or lifecycle.look(run_dir).claim_dead


def _nothing_awaited(node: str) -> None:
    """Forget a start that was sent, not taken, and is not wanted any more: it proves nothing about the start worker."""
    untaken = Q(start_taken_clock=None) | Q(start_taken_clock__lt=F("start_sent_clock"))
    Node.objects.filter(untaken, name=node, start_sent_clock__isnull=False).update(start_sent_clock=None)


def sent(node: str, starts: Sequence[Start]) -> None:
    """Note when a message was sent, by the database's clock; a node keeps the time of the first one not taken yet."""
    now = clock.now()
    all_taken = Q(start_sent_clock=None) | Q(start_taken_clock__gte=F("start_sent_clock")) | Q(start_sent_clock__gt=now)
    with cycle_row.in_line(), transaction.atomic():
        for attempt, jobs in _by_attempt(starts).items():
            Job.objects.filter(pk__in=jobs, attempt=attempt).update(dispatched_clock=now)
        Node.objects.filter(all_taken, name=node).update(start_sent_clock=now)


def _by_attempt(starts: Iterable[Start]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for job, attempt in starts:
        found.setdefault(attempt, []).append(job)
    return found


def pass_on_stops(node: str) -> None:
    """Ask the runners of this node's jobs that somebody cancelled, without waiting for the next tick."""
    asked = Job.objects.filter(node=node, state__in=ACTIVE, stop_clock=None).exclude(stop_requested_at=None)
    found = list(asked.select_related("user"))
    if not found:
        return
    knobs, _ = snapshots.knobs_now()
    for job in found:
        starting.make_run_dir(job)
        lifecycle.ask_now(job, knobs)
