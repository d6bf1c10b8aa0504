"""What contexts cost on each card model, as a person's runs showed it: a run's own word is no evidence for others."""

from __future__ import annotations

from datetime import datetime

from calibration.domain.contexts import NEWEST, Allowance, allowance
from calibration.models import ContextSeen


def of(model: str, user: str, default: int) -> Allowance:
    """Return what a process's context is taken to cost on this model in this person's runs; ``default`` in bytes."""
    if not model:
        return Allowance(default)
    seen = ContextSeen.objects.filter(model=model, user=user).order_by("-at", "-pk").values_list("bytes", flat=True)
    return allowance(list(seen[:NEWEST]), default)


def by_person(model: str, default: int) -> dict[str, Allowance]:
    """Return the same for each person whose runs on this model told something, by name."""
    users = ContextSeen.objects.filter(model=model).order_by("user").values_list("user", flat=True).distinct()
    return {user: of(model, user, default) for user in users}


def keep(model: str, user: str, owner: str, size: int, at: datetime) -> None:
    """Keep what one run showed, once per owner; older ones than count are let go."""
    fields = {"model": model, "user": user, "bytes": size, "at": at}
    _, new = ContextSeen.objects.get_or_create(owner=owner, defaults=fields)
    if new:
        old = (
            ContextSeen.objects.filter(model=model, user=user)
            .order_by("-at", "-pk")
            .values_list("pk", flat=True)[NEWEST:]
        )
        ContextSeen.objects.filter(pk__in=list(old)).delete()
