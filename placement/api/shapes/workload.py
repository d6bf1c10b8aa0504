"""Workloads: what was learned and defined, and what is said about it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from placement.api.shapes.judgement import Estimate
from placement.api.shapes.kinds import Amount, Body, Bytes, MaybeMoment, Moment, Query, Seconds, Shape


class WorkloadLine(Shape):
    """One workload, or one script that somebody types."""

    id: str
    title: str
    named: bool = Field(description="Defined or run under a name.")
    parameters: int = Field(description="So many sets of parameters that matter were run.")
    runs: int
    failed: int
    last_at: MaybeMoment


class WorkloadList(Shape):
    """One page of workloads."""

    workloads: list[WorkloadLine]
    never_run: list[WorkloadLine] = Field(description="Defined, and not run yet; on the first page.")
    more: bool


class WorkloadsAsked(Query):
    """Which workloads, in which order."""

    q: str = Field("", max_length=200)
    which: Literal["all", "named", "typed", "mine"] = "all"
    order: Literal["recent", "name", "runs", "failed"] = "recent"
    page: int = Field(1, ge=1, le=100_000)


class KeyAsked(Query):
    """Which set of parameters."""

    key: str = Field("", max_length=64, description="The newest where it is left out.")


class RunsAsked(KeyAsked):
    """Which runs."""

    before: int | None = Field(None, ge=0, lt=2**63, description="`older` of the page before.")


class NeedAsked(KeyAsked):
    """With how many workers."""

    workers: int | None = Field(None, ge=1, le=10_000, description="As the last run where it is left out.")


class ParameterSet(Shape):
    """One set of parameters that matter to memory."""

    key: str
    text: str = Field(description='"" for whoever may not see what was typed.')
    runs: int


class Pin(Shape):
    """A need that somebody set."""

    kind: str
    amount: str
    who: str
    at: Moment
    whole: bool = Field(description="For all of the program, not for this script alone.")


class Workload(Shape):
    """A workload with its sets of parameters and what is pinned."""

    id: str
    title: str
    named: bool
    defined: bool
    person: str | None = Field(description="Who types it; null for a named one.")
    key: str
    kinds: list[str]
    parameters: list[ParameterSet]
    pins: list[Pin]
    script: str | None = Field(description="For those who may see what was typed.")


class WorkloadAnswer(Shape):
    """A workload."""

    workload: Workload


class WorkloadSaid(Shape):
    """What was done."""

    message: str
    id: str


class LearnedRun(Shape):
    """One run that was kept. ``standing`` says whether it counts, and why not, for the first kind of memory."""

    id: int
    job: int | None
    at: Moment
    workers: int
    peaks: dict[str, Bytes]
    duration_s: Seconds
    outcome: str
    standing: str
    counts: bool
    atypical: bool
    forgotten: bool
    marked_by: str | None
    marked_at: MaybeMoment


class RunList(Shape):
    """One page of runs, the newest first."""

    runs: list[LearnedRun]
    older: int | None


class Need(Shape):
    """What a run would be charged, with the whole ladder."""

    workers: int
    estimate: Estimate


class DefineBody(Body):
    """A definition, as docs/workloads.md has it."""

    toml: str = Field(max_length=200_000)


class RunMark(Body):
    """What is said about one run."""

    run: int = Field(ge=0, lt=2**63)
    what: Literal["atypical", "forget", "count"]


class ForgetBody(Body):
    """What ended more than so many days ago is forgotten."""

    days: int = Field(ge=0, le=20_000, description="0 forgets all of it.")


class PinBody(Body):
    """A need that is charged whatever was learned."""

    kind: Literal["vram", "ram"]
    amount: Amount = Field(None, description="Bytes, or text with a unit; null: learned again.")
    whole: bool = Field(False, description="For all of the program, not for this script alone.")
