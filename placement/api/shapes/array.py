from __future__ import annotations

from pydantic import Field

from placement.api.shapes.kinds import Moment, Shape


class Array(Shape):
    """Many jobs from one submission."""

    id: int
    name: str
    user: str
    size: int
    limit: int | None = Field(description="So many run at once; null: no limit.")
    made_at: Moment
    counts: dict[str, int] = Field(description="Members by state, those that ended by outcome.")


class ArrayAnswer(Shape):
    """An array."""

    array: Array


class ArraySaid(Shape):
    """What was done, and the array after it."""

    message: str
    array: Array
