"""Tokens as their owners and admins see them: what tells one from another, never what opens anything."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import AbstractBaseUser
from django.utils import timezone

from placement.models.token import Token

ENDED_SHOWN = 20


@dataclass(frozen=True, slots=True)
class TokenLine:
    """One token. ``state`` is in force, expired, revoked or closed: the last where its user is kept out."""

    id: int
    user: str
    name: str
    shown: str
    scope: str
    state: str
    made: datetime
    expires: datetime | None
    used: datetime | None
    revoked: datetime | None
    revoked_by: str

    @property
    def alive(self) -> bool:
        """Return whether it opens anything."""
        return self.state == "in force"


def of(user: AbstractBaseUser | None = None) -> tuple[TokenLine, ...]:
    """Return a user's tokens, or everybody's for None: those in force first, then the newest that ended."""
    rows = Token.objects.select_related("user").order_by("-pk")
    lines = [line(row) for row in (rows if user is None else rows.filter(user_id=user.pk))]
    ended = [one for one in lines if not one.alive]
    return (*(one for one in lines if one.alive), *ended[:ENDED_SHOWN])


def line(row: Token) -> TokenLine:
    """Return one token."""
    return TokenLine(
        id=row.pk,
        user=row.user.get_username(),
        name=row.name,
        shown=f"{row.start}…{row.end}",
        scope=row.scope,
        state=_state(row),
        made=row.made_at,
        expires=row.expires_at,
        used=row.used_at,
        revoked=row.revoked_at,
        revoked_by=row.revoked_by,
    )


def _state(row: Token) -> str:
    if row.revoked_at is not None:
        return "revoked"
    if row.expires_at is not None and row.expires_at <= timezone.now():
        return "expired"
    return "in force" if row.user.is_active else "closed"
