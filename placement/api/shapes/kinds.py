"""What bodies and answers are made of: strict on the way in, exact on the way out."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, field_validator

from calibration.domain.resources import parse_bytes
from placement.domain.submitting.submission import bad_characters


def storable(value: Any) -> Any:
    """Return what was sent. Raise ValueError for text that no database holds."""
    if isinstance(value, str) and (wrong := bad_characters(value)):
        raise ValueError(wrong)
    return value


class Body(BaseModel):
    """A body. Unknown fields are refused, no value is taken for one of another kind, null is as good as left out."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @field_validator("*")
    @classmethod
    def _characters(cls, value: Any) -> Any:
        return storable(value)


class Query(BaseModel):
    """A query. Its names are all that an operation takes there; others are refused before it is read."""


class Shape(BaseModel):
    """An answer, or a part of one: all of its fields, and no others."""

    model_config = ConfigDict(extra="forbid")


def _amount(value: Any, *, up: bool = True) -> Any:
    if isinstance(value, str):
        return parse_bytes(value, up=up)  # BadAmount is a ValueError with its sentence
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError("It must be bytes as a whole number, or text such as 24 GiB.")
    return value


Amount = Annotated[
    int | None,
    BeforeValidator(_amount),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string", "pattern": r"\d"}, {"type": "null"}]}),
    Field(description='Bytes, or text with a unit ("24 GiB"; a bare number in text is MiB).'),
]
"""Bytes as sent: a whole number, or text with a unit."""

Capacity = Annotated[
    int | None,
    BeforeValidator(partial(_amount, up=False)),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string", "pattern": r"\d"}, {"type": "null"}]}),
    Field(description='Bytes, or text with a unit ("24 GB"; a bare number in text is MiB), rounded down to a byte.'),
]
"""What a device or a node can give, as sent."""

FormKey = Annotated[
    str | None, Field(min_length=1, max_length=64, description="The same key sent twice makes one job.")
]
"""What tells a request that is sent again from another one."""

Id = Annotated[int, Field(ge=0)]
"""A number in a path."""

Bytes = Annotated[int | None, Field(description="Bytes; null is unknown.")]
Moment = Annotated[datetime, Field(description="ISO 8601.")]
MaybeMoment = Annotated[datetime | None, Field(description="ISO 8601.")]
Seconds = Annotated[float | None, Field(description="Seconds.")]
