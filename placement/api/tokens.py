"""Tokens for programs, and who asks."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Query

from placement.api.doors import token_of
from placement.api.nouns import Noun
from placement.api.shapes.kinds import Id
from placement.api.shapes.token import Me, TokenBody, TokenList, TokenMade, TokenSaid, TokensAsked
from placement.domain.errors import NotYours
from placement.models import Role
from placement.models.token import Token
from placement.selectors import access
from placement.selectors import tokens as lines
from placement.services import tokens

noun = Noun("Tokens")


@noun.read("/me", Me)
def me(request: HttpRequest) -> dict[str, Any]:
    """Return who asks, with which role."""
    token = token_of(request)
    role = access.role_of(request.user)
    return {
        "user": request.user.get_username(),
        "role": role.value if role else None,
        "token": None if token is None else _told(lines.line(token)),
    }


@noun.read("/tokens", TokenList)
def listed(request: HttpRequest, asked: Query[TokensAsked]) -> dict[str, Any]:
    """Return your tokens; as an admin, everybody's."""
    if asked.everybody and not access.at_least(request.user, Role.ADMIN):
        raise NotYours("Everybody's tokens are listed for admins only.")
    return {"tokens": [_told(one) for one in lines.of(None if asked.everybody else request.user)]}


@noun.change(
    "/tokens", TokenMade, Role.VIEWER, status=201, sample={"name": "nightly script", "scope": "submit", "days": 90}
)
def make(request: HttpRequest, asked: TokenBody) -> dict[str, Any]:
    """Make a token of your own; its text is told once."""
    tokens.may_make(token_of(request))
    token, text = tokens.make(request.user, asked.name, asked.scope, asked.days)
    return {"token": _told(lines.line(token)), "text": text}


@noun.change("/tokens/{int:token_id}/revoke", TokenSaid, Role.VIEWER)
def revoke(request: HttpRequest, token_id: Id) -> dict[str, Any]:
    """End a token: your own, or as an admin anybody's."""
    tokens.may_make(token_of(request))
    said = tokens.revoke(request.user, token_id)
    return {"message": said, "token": _told(lines.line(Token.objects.select_related("user").get(pk=token_id)))}


def _told(one: lines.TokenLine) -> dict[str, Any]:
    return {
        "id": one.id,
        "user": one.user,
        "name": one.name,
        "shown": one.shown,
        "scope": one.scope,
        "state": one.state,
        "made_at": one.made,
        "expires_at": one.expires,
        "used_at": one.used,
        "revoked_at": one.revoked,
        "revoked_by": one.revoked_by or None,
    }
