"""Notices, and where they go besides pages."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from placement.api.shapes.kinds import Body, MaybeMoment, Moment, Query, Shape

KindWord = Literal["started", "finished", "failed", "retried", "stopped", "held", "hold_ends"]


class NoticesAsked(Query):
    """Which notices."""

    before: int | None = Field(None, ge=0, lt=2**63, description="`older` of the page before.")


class Notice(Shape):
    """Something that happened to a job or an array of yours."""

    id: int
    kind: str
    title: str
    sentence: str
    at: Moment
    job: int | None
    array: int | None
    unread: bool


class NoticeList(Shape):
    """One page of your notices, newest first."""

    notices: list[Notice]
    older: int | None
    unread: int


class SeenBody(Body):
    """Up to which notice you have looked."""

    newest: int = Field(ge=0, lt=2**63)


class SettingsBody(Body):
    """What you are told of in pages."""

    kinds: list[KindWord]
    waited_min: int = Field(ge=0, le=100_000, description="Minutes of waiting after which a start is told.")


class Hook(Shape):
    """A place that notices go to. Its address is never shown again."""

    id: int
    name: str
    shown: str = Field(description="The kind of address, and its host where that is no secret.")
    on: bool
    kinds: list[str]
    last_at: MaybeMoment
    last_ok: bool | None
    last_sentence: str
    waits: int = Field(description="So many messages are still to go there.")


class Settings(Shape):
    """What you are told of, and where it goes."""

    kinds: list[str]
    waited_min: int
    hooks: list[Hook]


class HookBody(Body):
    """A new place."""

    address: str = Field(max_length=600, description="A webhook's URL, mailto://…, ntfy://…, slack://… and others.")
    name: str = Field("", max_length=60)
    kinds: list[KindWord]


class HookChange(Body):
    """What a place is told of, and whether."""

    kinds: list[KindWord]
    on: bool = True


class SettingsSaid(Shape):
    """What was done, and how it stands after it."""

    message: str
    settings: Settings
