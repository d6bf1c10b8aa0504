"""Why a job that once could start never can now: the edit of a declaration that made it so, and who made it."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q
from django.utils import timezone

from calibration.domain.resources import gib
from placement.models import AuditEntry, Job

_EDITS = ("edit_device", "edit_node")


def of_infeasible(job: Job) -> str:
    """Return a sentence that names the newest edit of a declaration since the job came, "" where there was none."""
    lowered = Q(detail__after__has_key="declared") | Q(detail__after__has_key="ram_declared")
    edits = AuditEntry.objects.filter(lowered, action__in=_EDITS, at__gte=job.submitted_at)
    edit = edits.order_by("-at").first()
    return "" if edit is None else _sentence(edit)


def _sentence(edit: AuditEntry) -> str:
    field = "declared" if "declared" in edit.detail["after"] else "ram_declared"
    before, after = edit.detail["before"].get(field), edit.detail["after"][field]
    return (
        f"{edit.who} changed the declared capacity of {edit.detail.get('label') or edit.subject} "
        f"from {_amount(before, after)} to {_amount(after, before)} at {_clock(edit.at)}."
    )


def _amount(amount: int | None, other: int | None) -> str:
    return "all there is" if amount is None else gib(amount, other)


def _clock(at: datetime) -> str:
    return timezone.localtime(at).strftime("%H:%M")
