from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from placement.api.shapes.judgement import Decision, Estimate, Forecast, Loose
from placement.api.shapes.kinds import Bytes, MaybeMoment, Moment, Query, Seconds, Shape

StateWord = Literal["queued", "admitted", "running", "finished"]
OutcomeWord = Literal[
    "completed", "failed", "cancelled", "timed_out", "cap_exceeded", "out_of_memory", "start_failed", "lost"
]


class Tie(Shape):
    """A job that has to end first. ``counts`` is the one that counts now: its last try."""

    job: int
    when: Literal["ok", "any", "failed"]
    counts: int
    state: StateWord
    outcome: OutcomeWord | None


class Membership(Shape):
    """The job's place in its array."""

    id: int
    index: int | None
    size: int
    limit: int | None


class Retry(Shape):
    """How a job is run again by itself."""

    times: int
    on: list[str]
    wait_s: float
    longest_s: float


class Progress(Shape):
    """How far a running job is: read from its log, or by its usual length."""

    share: float | None
    source: Literal["log", "usual"]
    read_at: MaybeMoment
    ends_about: MaybeMoment


class Job(Shape):
    """One job. ``note`` and what follows are there for its owner and for operators alone."""

    id: int
    name: str
    user: str
    workload: str | None
    state: StateWord
    outcome: OutcomeWord | None
    sentence: str = Field(description="How it ended, with the figures.")
    flags: list[str]
    workers: int
    gpu: Literal["none", "one", "group"]
    min_devices: int
    max_devices: int
    prefer_max: bool
    memory: Literal["auto", "exact"]
    per_device_memory: Bytes
    group_memory: Bytes
    even: bool = Field(description="False: the group's memory is divided by the room of its devices.")
    device_kind: str | None
    backend: str | None
    exclusive: Literal["no", "device", "machine"]
    priority: int
    time_limit_s: Seconds
    declared_ram: Bytes
    declared_vram: Bytes
    attempt: int
    retry_of: int | None
    submitted_at: Moment
    admitted_at: MaybeMoment
    started_at: MaybeMoment
    ended_at: MaybeMoment
    duration_s: Seconds
    exit_code: int | None
    exit_signal: int | None
    node: str | None
    device: str | None = Field(description="The first of its devices.")
    devices: list[str] = Field(description="All of its devices, as granted: UUIDs.")
    basis: str | None
    charges: dict[str, Loose] = Field(
        description="By pool: granted, held, at_start, cap, margin, settled, note; force: which cap is in force, "
        "with kind, bytes, sentence and evidence."
    )
    used: dict[str, int | None] = Field(description="By pool, bytes at the last look; of an ended job see peak.")
    peak: dict[str, int | None] | None = Field(
        description="By pool, the most bytes that were seen; null until it ends. Of a group at most so much each."
    )
    estimate: Estimate | Loose
    decision: Decision | None
    forecast: Forecast | None
    progress: Progress | None = Field(description="Of a running job, where something tells.")
    decided_at: MaybeMoment
    headline: str
    code: str | None
    evidence: Loose = Field(
        description="What is known of the end; postmortem: whose doing a death of memory was (blame, told)."
    )
    raised: dict[str, int] | None = Field(
        description="Bytes by kind (ram, vram) that a retry with raised asks for, after a death of memory that was its "
        "own doing; else null."
    )
    leftovers: list[Any]
    after: list[Tie]
    not_before: MaybeMoment
    array: Membership | None
    retry: Retry | None
    retry_number: int
    retried_as: int | None
    held_by: str | None
    held_why: str
    note: str = ""
    command: str = ""
    argv: list[str] | None = None
    cwd: str = ""
    setup: str = ""
    params: dict[str, str] = Field(default_factory=dict)
    image: str | None = Field(None, description="Of the container that it runs in; null: in none.")
    engine: str | None = Field(None, description="docker or podman; null: the first that its node has.")


class JobAnswer(Shape):
    """A job."""

    job: Job


class JobSaid(Shape):
    """What was done, and the job after it."""

    message: str
    job: Job


class JobLine(Shape):
    """One job of a list."""

    id: int
    name: str
    user: str
    state: StateWord
    outcome: OutcomeWord | None
    sentence: str
    headline: str
    basis: str | None
    workers: int
    priority: int
    array: int | None
    submitted_at: Moment
    started_at: MaybeMoment
    ended_at: MaybeMoment
    duration_s: Seconds


class JobList(Shape):
    """One page of jobs, newest first."""

    jobs: list[JobLine]
    older: int | None = Field(description="Pass it as before for the next page; null where there is none.")
    newer: int | None = Field(description="Pass it as after for the page before.")
    searched: list[int] | None = Field(
        description="The first and last number that a search by name looked at; go on with before=older."
    )


class JobsAsked(Query):
    """Which jobs."""

    whose: Literal["all", "mine"] = "all"
    q: str = Field("", max_length=100, description="A part of the name.")
    outcome: Literal[
        "", "queued", "admitted", "running", "completed", "failed", "cancelled", "timed_out", "cap_exceeded",
        "out_of_memory", "start_failed", "lost",
    ] = Field("", description="Or a state; left out: any.")  # fmt: skip
    array: int | None = Field(None, ge=0, lt=2**63, description="Members of this array alone.")
    before: int | None = Field(None, ge=0, lt=2**63, description="`older` of the page before.")
    after: int | None = Field(None, ge=0, lt=2**63, description="`newer` of a page.")


class Verdict(Shape):
    """One verdict of the past."""

    at: Moment
    verdict: str
    code: str
    headline: str


class History(Shape):
    """The newest verdicts of a job, newest first; one is kept whenever it changed."""

    verdicts: list[Verdict]
    pruned: str = Field(description='Why older ones are gone, "" where they are not.')
