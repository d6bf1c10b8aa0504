from __future__ import annotations

from pydantic import Field

from placement.api.shapes.kinds import Bytes, Shape


class Process(Shape):
    """A process in a pool."""

    pid: int
    user: str
    name: str | None = Field(description="null for whoever may not see it.")
    rule: str = Field(description="By which rule it belongs to its owner; empty: to nobody we know.")
    why: str
    bytes: Bytes


class OwnerPart(Shape):
    """What one owner has of a pool. ``owner`` is job:12, service, or empty for what is not ours."""

    owner: str
    bytes: Bytes
    processes: list[Process]
    more: int = Field(description="So many processes are not listed,")
    more_bytes: int | None = Field(description="with so many bytes in all; null where one of them is unknown.")


class AttributedPool(Shape):
    """A pool with who fills it."""

    node: str
    pool: str
    total: Bytes
    used: Bytes
    unexplained: Bytes
    reserved: Bytes = Field(description="What the driver keeps to itself.")
    owners: list[OwnerPart]


class AttributionList(Shape):
    """All pools."""

    pools: list[AttributedPool]
