"""Step 10: raise the queue page's version when what it shows has changed, and only then."""

from __future__ import annotations

import hashlib
import json

from django.db.models import F, Q
from django.utils import timezone

from calibration.models import PoolNow
from placement.domain.jobs import ACTIVE, State
from placement.models import Cycle, Device, Job, Node

_STEP = 64 << 20  # bytes: a smaller move of a figure is not worth a new page
_RECENT = 30


def publish() -> bool:
    """Return whether the queue page has something new to show since the last call."""
    digest = hashlib.sha256(json.dumps(_shown(), sort_keys=True, default=str).encode()).hexdigest()[:16]
    row = Cycle.objects.filter(pk=1).first()
    if row is None or row.fragments.get("queue") == digest:
        return False
    Cycle.objects.filter(pk=1).update(fragments={**row.fragments, "queue": digest}, version=F("version") + 1)
    return True


def _shown() -> list[object]:
    live = Job.objects.filter(Q(state__in=ACTIVE) | Q(state=State.QUEUED)).order_by("id")
    jobs = [
        (j.pk, j.state, j.headline, j.code, j.attempt, j.unsupervised, j.leader_exit, j.flags, j.stop_reason, j.held_by,
         {p: _round(u) for p, u in j.used.items()}, {p: _round(c["held"]) for p, c in j.charges.items()})
        for j in live
    ]  # fmt: skip
    ended = list(Job.objects.filter(state=State.FINISHED).order_by("-ended_at").values_list("pk", "outcome")[:_RECENT])
    pools = [
        (p.node, p.pool, p.state, p.message, _round(p.used), _round(p.external), _round(p.total))
        for p in PoolNow.objects.order_by("node", "pool")
    ]
    nodes = list(
        Node.objects.order_by("pk").values_list(
            "name", "draining", "held_by", "ram_declared", "ram_pressure", "watchdog_note", "broker_away_since", "notes"
        )
    )
    devices = list(Device.objects.order_by("pk").values_list("name", "declared", "draining", "held_by", "retired"))
    minute = timezone.now().strftime("%H:%M")  # waits and ages are shown in minutes
    return [jobs, ended, pools, nodes, devices, minute]


def _round(amount: int | None) -> int | None:
    return None if amount is None else amount // _STEP
