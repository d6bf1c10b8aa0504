from __future__ import annotations

from typing import Annotated

from pydantic import Field

from placement.api.shapes.job import StateWord
from placement.api.shapes.judgement import DatedDecision, Estimate, Forecast, Held, Loose
from placement.api.shapes.kinds import Body, Bytes, MaybeMoment, Moment, Query, Seconds, Shape

Mib = Annotated[int | None, Field(description="Whole MiB, truncated; null is unknown.")]


class Outsider(Shape):
    """A process of nobody we know. ``name`` is for operators alone."""

    pid: int | None
    user: str | None
    bytes: Bytes
    name: str | None = None


class Left(Shape):
    """Memory that outlived its process: a part of what is unexplained, and whose it was."""

    owner: str
    bytes: int
    until: float = Field(description="Unix seconds.")


class Pool(Shape):
    """One body of memory, as it was read last."""

    node: str
    pool: str
    kind: str
    name: str
    state: str
    message: str
    simulated: bool
    total: Bytes
    free: Bytes
    used: Bytes
    reserved: Bytes
    external: Bytes
    external_who: list[Outsider]
    unexplained: Bytes
    left: list[Left]
    files: Bytes = Field(description="Of RAM: files that live in it (/dev/shm) and shared segments, whoever made them.")
    alone: int | None = Field(description="The job that has it alone: nothing else starts there, whatever is free.")
    owners: dict[str, int | None]
    age_s: Seconds


class Running(Shape):
    """A job that has started or is starting."""

    id: int
    name: str
    user: str
    workers: int
    state: StateWord
    node: str
    device: str | None
    devices: list[str] = Field(description="All of its devices, as granted: UUIDs.")
    started_at: MaybeMoment
    charges: dict[str, Loose]
    used: dict[str, int | None]
    cancel_requested: bool
    admit_basis: str
    admit_charges: dict[str, Mib]


class Queued(Shape):
    """A job that waits, with every reason."""

    id: int
    name: str
    user: str
    workers: int
    priority: int
    submitted_at: Moment
    estimate: Estimate | Loose
    headline: str
    code: str | None
    decision: DatedDecision | None
    forecast: Forecast | None
    held: Held | None


class Attributed(Shape):
    """How much of one kind of memory belongs to whom."""

    used_total_mb: Mib
    attributed_mb: Mib
    external_mb: Mib
    shared_mb: dict[str, Mib]
    jobs_mb: dict[str, Mib]


class Resources(Shape):
    """By kind of memory."""

    vram: Attributed
    ram: Attributed


class Attribution(Shape):
    """The sums over all pools."""

    sampled_at: Moment
    resources: Resources


class Queue(Shape):
    """The whole picture, or one page of what waits with it."""

    at: Moment
    held: Held | None
    pools: list[Pool]
    running: list[Running]
    measured_free_mb: dict[str, Mib]
    pending_reservation_mb: dict[str, Mib]
    attribution: Attribution
    waiting: int = Field(description="How many jobs wait in all.")
    next: str | None = Field(description="Pass it as after for the next page; null where there is none.")
    queued: list[Queued]


class QueueAsked(Query):
    """Which part of what waits."""

    after: str = Field("", max_length=40, pattern=r"^(-?\d{1,9}\.\d{1,18})?$", description="`next` of the page before.")
    limit: int = Field(100, ge=1, le=1000, description="So many waiting jobs at most.")
    all: bool = Field(False, description="Everything that waits in one answer, however long it is.")


class HoldBody(Body):
    """Why, and for how long."""

    why: str = Field("", max_length=200)
    hours: float | None = Field(None, ge=0.01, le=8760, description="null: until released.")


class WhyBody(Body):
    """Why, for those who wonder."""

    why: str = Field("", max_length=200)


class Said(Shape):
    """What was done, as a sentence."""

    message: str
