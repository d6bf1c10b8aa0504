"""What is done with jobs, and what they taught."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from placement.api.shapes.kinds import Amount, Body, Bytes, FormKey, MaybeMoment, Shape
from placement.domain.submitting.submission import MOST_PRIORITY, MOST_WORKERS
from placement.services.bulk import MOST

Named = Annotated[int | str, Field(description='12 or "12" for a job, "a3" for what waits of array 3.')]


class BulkBody(Body):
    """One act on many jobs."""

    verb: Literal["cancel", "retry", "hold", "release", "priority"]
    jobs: list[Named] = Field(min_length=1, max_length=MOST)
    priority: int | None = Field(None, ge=-MOST_PRIORITY, le=MOST_PRIORITY, description="For the verb priority.")
    why: str = Field("", max_length=200, description="For the verb hold.")
    form_key: FormKey = None


class BulkResult(Shape):
    """What became of one name."""

    name: str
    count: int = Field(description="So many jobs were changed.")
    sentence: str


class BulkSaid(Shape):
    """What became of all of them."""

    message: str
    count: int
    results: list[BulkResult]


class RetryBody(Body):
    """With how much more memory a job is run again; nothing of it: as it was."""

    raised: bool = Field(False, description="With what its own answer offers as raised; refused where it offers none.")
    declared_ram: Amount = Field(None, description="At least so much; what was declared stands where it is more.")
    declared_vram: Amount = Field(None, description="At least so much; what was declared stands where it is more.")

    form_key: FormKey = None

    def at_least(self) -> dict[str, int]:
        """Return the bytes that were sent, by kind."""
        sent = {"ram": self.declared_ram, "vram": self.declared_vram}
        return {kind: amount for kind, amount in sent.items() if amount is not None}


class PriorityBody(Body):
    """Where a job stands in the queue."""

    priority: int = Field(ge=-MOST_PRIORITY, le=MOST_PRIORITY, description="Higher goes first; above 0: for operators.")


class MarkBody(Body):
    """What is said about a run."""

    what: Literal["atypical", "forget", "count"] = Field(description="count: it counts in estimates again.")


class ArgumentBody(Body):
    """Whether an argument matters to memory."""

    name: str = Field(min_length=1, max_length=500)
    matters: bool


class Argument(Shape):
    """An argument that a typed command is learned under."""

    name: str
    text: str
    hint: str = Field(description="Why it may not matter to memory.")
    matters: bool


class Taught(Shape):
    """What an ended run left for estimates."""

    ram: Bytes
    vram: Bytes
    counts: bool
    atypical: bool
    forgotten: bool
    marked_by: str | None
    marked_at: MaybeMoment


class Learned(Shape):
    """What a run is learned under, and what it taught."""

    arguments: list[Argument]
    taught: Taught | None = Field(description="null: nothing was seen of it often enough.")
    variables: list[str] = Field(description="Names of the submission's own variables; values are shown to nobody.")


class ChangeBody(Body):
    """What a waiting job asks for instead; it can only be less. What is left out or null stays."""

    workers: int | None = Field(None, ge=1, le=MOST_WORKERS)
    declared_ram: Amount = None
    declared_vram: Amount = None
    time_limit_s: float | None = Field(None, gt=0, description="Where it has none, any is less.")
    devices: int | None = Field(None, ge=1, description="Of a group, at least; where it was an exact number, exactly.")
    per_device_memory: Amount = None
    group_memory: Amount = None
    beside: bool = Field(False, description="No longer alone on its device or machine.")
    anywhere: bool = Field(False, description="No longer on one named node or device.")
