from __future__ import annotations

from typing import Literal

from pydantic import Field

from placement.api.shapes.kinds import Body, MaybeMoment, Moment, Query, Shape

ScopeWord = Literal["read", "submit", "full"]
RoleWord = Literal["viewer", "submitter", "operator", "admin"]


class TokenBody(Body):
    """A token to be made."""

    name: str = Field(description="What uses it.")
    scope: str = Field(description="read: looks as a viewer; submit: acts as a submitter; full: as you.")
    days: float | None = Field(None, description="So long it is in force; null: until it is revoked.")


class TokensAsked(Query):
    """Whose tokens."""

    everybody: bool = Field(False, description="For an admin.")


class Token(Shape):
    """A token, without what opens anything."""

    id: int
    user: str
    name: str
    shown: str = Field(description="Its first and last characters.")
    scope: ScopeWord
    state: Literal["in force", "expired", "revoked", "closed"] = Field(description="closed: its user is kept out.")
    made_at: Moment
    expires_at: MaybeMoment
    used_at: MaybeMoment = Field(description="To the minute.")
    revoked_at: MaybeMoment
    revoked_by: str | None


class TokenList(Shape):
    """Tokens, those in force first."""

    tokens: list[Token]


class TokenMade(Shape):
    """A new token. ``text`` is told only now."""

    token: Token
    text: str = Field(description="What is sent after Authorization: Bearer.")


class TokenSaid(Shape):
    """What was done, and the token after it."""

    message: str
    token: Token


class Me(Shape):
    """Who asks."""

    user: str
    role: RoleWord = Field(description="What may be done here and now: a token's scope can make it less than yours.")
    token: Token | None = Field(description="null for a session.")
