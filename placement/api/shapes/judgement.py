"""What the gate says of a job: the estimate with its ladder, the decision with its checks, the forecast."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from placement.api.shapes.kinds import Bytes, MaybeMoment, Moment, Seconds, Shape

Sure = Literal["limit", "learned", "guess"]


class Rung(Shape):
    """One rung of the trust ladder: its number, or why it has none."""

    basis: str
    bytes: Bytes
    margin: Bytes
    why: str
    counted: bool = Field(description="Whether the estimate stands on this rung.")


class PoolEstimate(Shape):
    """What a run is expected to need of one kind of memory."""

    need: Bytes
    basis: str
    margin: Bytes
    notes: list[str]
    rungs: list[Rung]


class Estimate(Shape):
    """What a run is expected to need, and what that stands on."""

    basis: str = Field(description="The worst of its parts.")
    notes: list[str]
    pools: dict[str, PoolEstimate] = Field(description="By kind of memory: vram, ram.")


class Check(Shape):
    """One question of the gate, with its answer and its figures in bytes and seconds."""

    code: str = Field(description="Explained in docs/reasons.md.")
    ok: bool
    sentence: str
    figures: dict[str, int | float | str | None]
    pool: str
    shortfall: int = Field(description="Bytes that are missing; 0 where it is not about bytes.")


class Candidate(Shape):
    """One place that could serve, with every check, those that passed too."""

    node: str
    device: str | None
    devices: list[str] | None = Field(None, description="Of a group: all of its devices.")
    label: str
    checks: list[Check]
    room: dict[str, int | None]
    need: dict[str, int]


class Planned(Shape):
    """When and where a start is expected."""

    node: str
    device: str | None
    devices: list[str] | None = Field(None, description="Of a group: all of its devices.")
    at: float | None
    in_s: Seconds
    sure: Sure
    waits_for: list[int]
    why_none: str
    keeps: bool
    late_s: Seconds = None  # decisions of the first versions do not say it


class Grant(Shape):
    """What a start is given, by pool."""

    node: str
    device: str | None
    devices: list[str] | None = Field(None, description="Of a group: all of its devices.")
    charges: dict[str, int]
    caps: dict[str, int]
    margins: dict[str, int]
    basis: str


class Decision(Shape):
    """The gate's answer: start or wait, with all its reasons."""

    verdict: Literal["start", "wait"]
    code: str | None = Field(description="Of the leading objection.")
    headline: str
    whole: list[Check]
    candidates: list[Candidate]
    planned: Planned | None
    grant: Grant | None


class DatedDecision(Decision):
    """A decision, and since when it stands."""

    since: MaybeMoment


class Forecast(Shape):
    """When a waiting job is expected to start."""

    made_at: Moment
    expected_at: MaybeMoment = Field(description="As likely as not it starts by then.")
    late_at: MaybeMoment = Field(description="Nine of ten such jobs start by then.")
    sure: Sure
    waits_for: list[int]
    why_none: str
    keeps: bool = Field(description="Nothing younger may delay it.")
    node: str | None
    device: str | None


class Held(Shape):
    """A hold: who, since, until (null: until released) and why."""

    by: str
    since: MaybeMoment
    until: MaybeMoment
    why: str


class SweepMember(Shape):
    """One of the first jobs that a sweep makes."""

    values: str
    command: str


class SweepNeed(Shape):
    """What its jobs need of one kind of memory."""

    kind: str
    least: Bytes
    most: Bytes


class Sweep(Shape):
    """What a sweep would make."""

    count: int
    first: list[SweepMember]
    needs: list[SweepNeed]
    at_once: int | None = Field(description="So many fit side by side now.")
    seconds: Seconds


class Preview(Shape):
    """What the gate would say of a submission now."""

    estimate: Estimate
    decision: Decision
    fits_now: bool
    headline: str
    answer: str = Field(description="Would get …, Waits: …, or Can never be granted: …")
    max_workers: int | None = Field(description="Submitting that many right away succeeds.")
    infeasible: bool = Field(description="It could never start here.")
    sweep: Sweep | None = Field(description="Of a sweep; the rest is about its first job.")


Loose = dict[str, Any]
"""An object whose names depend on what happened."""
