"""Tokens for programs: made once, shown once, kept as a hash; every one made or revoked is on record."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from placement.domain.errors import NotFound, NotYours, Refused
from placement.domain.submitting.submission import bad_characters
from placement.models import Role
from placement.models.token import Scope, Token
from placement.services import audit, members

PREFIX = "tg_"
MOST = 50  # tokens in force of one person
LONGEST_DAYS = 3660
_SHOWN = len(PREFIX) + 4
_USED_EVERY = timedelta(minutes=1)
_CAPS = {Scope.READ: Role.VIEWER, Scope.SUBMIT: Role.SUBMITTER, Scope.FULL: None}


def make(user: Any, name: str, scope: str, days: float | None = None) -> tuple[Token, str]:
    """Store a token of the user's own and return it with its text, which nobody can read again.

    ``days`` is how long it is in force, None: until it is revoked. Raise Refused with a sentence per field.
    """
    name, wrong = name.strip() if isinstance(name, str) else "", {}
    if not 1 <= len(name) <= 100:
        wrong["name"] = "Say what uses it, in 1 to 100 characters."
    elif sentence := bad_characters(name):
        wrong["name"] = sentence
    if not isinstance(scope, str) or scope not in set(Scope):
        wrong["scope"] = f"It is one of {', '.join(Scope)}."
    if days is not None and not 0 < days <= LONGEST_DAYS:
        wrong["days"] = f"It must be above 0 and at most {LONGEST_DAYS:,} days; leave it empty for no end."
    if wrong:
        raise Refused(" ".join(wrong.values()), wrong)
    if (count := in_force(Token.objects.filter(user=user)).count()) >= MOST:
        raise Refused(f"{user.get_username()} has {count} tokens in force; {MOST} are the most. Revoke one first.")
    text = PREFIX + secrets.token_urlsafe(32)
    token = Token.objects.create(
        user=user,
        name=name,
        digest=digest(text),
        start=text[:_SHOWN],
        end=text[-4:],
        scope=scope,
        expires_at=None if days is None else timezone.now() + timedelta(days=days),
    )
    until = token.expires_at.isoformat(timespec="minutes") if token.expires_at else None
    audit.record(user, "make_token", f"token {_told(token)}", name=name, scope=scope, until=until)
    return token, text


def revoke(user: Any, token_id: int) -> str:
    """End a token: one's own, or as an admin anybody's; one that is revoked already stays as it is."""
    token = Token.objects.select_related("user").filter(pk=token_id).first() if token_id < 2**63 else None
    admin = members.may(user, "administer")
    if token is None or (token.user_id != user.pk and not admin):
        raise NotFound(f"You have no token {token_id}.")  # whether somebody else has is nobody's business
    if Token.objects.filter(pk=token.pk, revoked_at=None).update(
        revoked_at=timezone.now(), revoked_by=audit.name_of(user)
    ):
        audit.record(user, "revoke_token", f"token {_told(token)}", name=token.name, of=token.user.get_username())
    return f"The token {token.name} ({_told(token)}) is revoked: nothing gets in with it any more."


def redeem(text: str) -> Token | None:
    """Return the token in force of this text with its user, who may do no more than its scope allows; else None."""
    rows = in_force(Token.objects.filter(digest=digest(text), user__is_active=True))
    token = rows.select_related("user__member").first()
    if token is None:
        return None
    now = timezone.now()
    if token.used_at is None or not timedelta(0) <= now - token.used_at < _USED_EVERY:
        Token.objects.filter(pk=token.pk).update(used_at=now)
    members.cap(token.user, _CAPS[Scope(token.scope)])
    return token


def in_force(rows: QuerySet[Token]) -> QuerySet[Token]:
    """Return those that still open something."""
    return rows.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()), revoked_at=None)


def may_make(token: Token | None) -> None:
    """Raise NotYours where a token of less than full scope would make another, or revoke one."""
    if token is not None and token.scope != Scope.FULL:
        raise NotYours(f"A token with the scope {token.scope} does not manage tokens; log in, or use one with full.")


def digest(text: str) -> str:
    """Return what is kept of a token's text. 32 random bytes need no slow hash."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _told(token: Token) -> str:
    return f"{token.start}…{token.end}"
