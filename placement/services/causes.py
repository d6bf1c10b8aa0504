"""Why a job that once could start never can now: the edit of a declaration that made it so, and who made it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q
from django.utils import timezone

from calibration.domain.resources import gib
from placement.models import AuditEntry, Job

_EDITS = ("edit_device", "edit_node")


def of_infeasible(jobs: Sequence[int]) -> dict[int, str]:
    """Return a sentence that names the newest edit of a declaration, for those of the jobs that came before it."""
    if not jobs:
        return {}
    lowered = Q(detail__after__has_key="declared") | Q(detail__after__has_key="ram_declared")
    edit = AuditEntry.objects.filter(lowered, action__in=_EDITS).order_by("-at").first()
    if edit is None:
        return {}
    before = Job.objects.filter(pk__in=jobs, submitted_at__lte=edit.at).values_list("pk", flat=True)
    return dict.fromkeys(before, _sentence(edit))


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
