"""What runs of a workload ask for while they run is kept, so that the next one is held where others wait for that."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from calibration.domain import keys
from placement.domain.world.asks import Ask
from placement.domain.world.known_asks import from_json, remembered, to_json
from placement.models import AskedLater, Job
from placement.services import audit, cycle_row, members

_FRESH_S = 3600.0  # an ask that was seen within is not written again: a step may ask a thousand times


def remember(job: Job, wanted: Ask) -> None:
    """Keep what a run asked for. The caller holds the cycle row."""
    subject = keys.subject(job.key_workload, job.key_script, job.key_params)
    row = AskedLater.objects.filter(subject=subject).first() or AskedLater(subject=subject)
    now, before = timezone.now().timestamp(), from_json(row.asks)
    after = remembered(before, wanted, now)
    seen = next((one.seen_at for one in before if one.ask == after[0].ask), None)
    if seen is None or now - seen > _FRESH_S:
        row.asks = to_json(after)
        row.save()


def forget(user: Any, workload: str, subject: str) -> str:
    """Let what runs of this subject ask for count no more, until one asks again. For operators."""
    members.need(user, "operate")
    with cycle_row.changing():
        gone, _ = AskedLater.objects.filter(subject=subject).delete()
        audit.record(user, "forget_asks", f"workload {workload}"[:200], forgotten=bool(gone))
    return "What its runs ask for while they run is forgotten: no job is held for that until one asks again."
