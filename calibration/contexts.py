"""What contexts cost on each card model, as runs showed it."""

from __future__ import annotations

from datetime import datetime

from calibration.domain.contexts import NEWEST, Allowance, allowance
from calibration.models import ContextSeen


def of(model: str, default: int) -> Allowance:
    """Return what a process's context is taken to cost on this model; ``default`` in bytes."""
    if not model:
        return Allowance(default)
    seen = ContextSeen.objects.filter(model=model).order_by("-at", "-pk").values_list("bytes", flat=True)
    return allowance(list(seen[:NEWEST]), default)


def keep(model: str, owner: str, size: int, at: datetime) -> None:
    """Keep what one run showed, once per owner; older ones than count are let go."""
    _, new = ContextSeen.objects.get_or_create(owner=owner, defaults={"model": model, "bytes": size, "at": at})
    if new:
        old = ContextSeen.objects.filter(model=model).order_by("-at", "-pk").values_list("pk", flat=True)[NEWEST:]
        ContextSeen.objects.filter(pk__in=list(old)).delete()
