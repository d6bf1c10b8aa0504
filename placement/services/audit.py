"""Who changed what and when."""

from __future__ import annotations

from typing import Any

from placement.models import AuditEntry


def record(user: Any, action: str, subject: str, **detail: Any) -> None:
    """Keep one change; ``user`` is a user, a name, or None for the service itself. Detail must be JSON."""
    AuditEntry.objects.create(who=name_of(user)[:150], action=action[:60], subject=subject[:200], detail=detail)


def name_of(user: Any) -> str:
    """Return what to call the one who did it."""
    if user is None:
        return "tidegate"
    return user if isinstance(user, str) else user.get_username()
