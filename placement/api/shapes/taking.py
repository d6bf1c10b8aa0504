from __future__ import annotations

from pydantic import Field

from placement.api.shapes.kinds import Amount, Body


class TakeBody(Body):
    """What somebody takes for themselves."""

    node: str
    device: str | None = Field(None, description="A device's UUID, or its name; left out: the whole machine.")
    size: Amount = Field(None, description="So much of the device, exactly; left out: the device alone.")
    hours: float = Field(1.0, gt=0, description="It ends after that.")
    why: str = Field("", max_length=500, description="Others read it.")
