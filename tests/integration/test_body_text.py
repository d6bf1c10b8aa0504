"""Every text that the API takes can be stored, or is refused beside its field; no database is asked about it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from placement.api.service import schema
from placement.api.shapes.inside import InsideBody, StepTold, Told
from placement.api.shapes.kinds import Body

LOADED = schema  # brings in every shape


def shapes(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for one in kind.__subclasses__():
        yield one
        yield from shapes(one)


TEXTS = sorted(
    {
        (shape.__name__, name): (shape, name)
        for kind in (Body, Told)
        for shape in shapes(kind)
        for name, field in shape.model_fields.items()
        if field.annotation in (str, str | None)
    }.items()
)


@pytest.mark.parametrize(("shape", "name"), [one for _, one in TEXTS], ids=[".".join(key) for key, _ in TEXTS])
@pytest.mark.parametrize("text", ["a\ud800", "a\0"])
def test_a_text_that_cannot_be_stored_is_refused_beside_its_field(shape: type[BaseModel], name: str, text: str) -> None:
    with pytest.raises(ValidationError) as refused:
        shape(**{name: text})
    assert (name,) in [error["loc"] for error in refused.value.errors()]


def test_plain_text_is_taken() -> None:
    step: dict[str, Any] = {"key": "s", "step": "merge é 日本\n"}
    told = InsideBody(key="k", session=StepTold(**step), ask={"group_bytes": 1})  # type: ignore[arg-type]
    assert told.session is not None
    assert told.session.step == step["step"]
    assert len(TEXTS) > 30
