"""What a job prints, and what it holds of memory while it does."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from placement.api.shapes.kinds import Query, Shape

Stream = Literal["stdout", "stderr"]


class StreamAsked(Query):
    """Which stream."""

    stream: Stream = "stdout"


class LogAsked(StreamAsked):
    """Which part of a log."""

    offset: int | None = Field(None, ge=0, lt=2**62, description="Bytes from its start; left out: the end of it.")


class LogPiece(Shape):
    """A stretch of a log: about 48 KiB at most, in whole lines where they are not longer; no character is cut."""

    stream: Stream
    text: str
    start: int = Field(description="Bytes from the log's start.")
    end: int = Field(description="Pass it as offset to go on.")
    size: int = Field(description="Of the whole log, bytes.")
    line: int | None = Field(description="The number of the first line, from 1; null where counting takes too long.")
    over: bool = Field(description="Nothing will be added any more.")
    gone: str = Field(description='Why there is no log, "" where there is one.')


class SearchAsked(StreamAsked):
    """What to look for, and from where."""

    q: str = Field("", max_length=200, description="Words; left out: the first error.")
    at: int | None = Field(None, ge=0, lt=2**62, description="`at` of the hit from which to go on.")
    to: Literal["next", "previous"] = "next"


class Hit(Shape):
    """One hit. Where ``searched`` is less than ``size``, asking again goes on."""

    at: int | None = Field(description="Bytes from the log's start, to read from there; null: no hit.")
    number: int = Field(description="Which one of total it is.")
    total: int
    searched: int
    size: int
    kind: str = Field(description='What the first error looks like, "" for words.')


class MemoryAsked(Query):
    """Which memory."""

    kind: Literal["device", "ram"] = "device"
    number: int = Field(
        0, ge=0, lt=64, description="Which of its devices, as in devices, from 0; then those that it took as it ran."
    )


class Memory(Shape):
    """What a job held of one pool over time; lists are of equal length, bytes, null where it was not measured."""

    step: int = Field(description="Seconds.")
    at: list[int] = Field(description="Unix seconds.")
    amounts: list[int | None]
    levels: dict[str, int | None] = Field(description="Its cap, charge and estimate, where it has them.")
