from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from placement.api.shapes.kinds import MaybeMoment, Moment, Shape, storable

Key = Field(min_length=1, max_length=128)


class Told(BaseModel):
    """What a program inside a job says. What a newer one says besides is ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)

    @field_validator("*")
    @classmethod
    def _characters(cls, value: Any) -> Any:
        return storable(value)


class ProcessTold(Told):
    """A process as it sees itself."""

    pid: int = Field(0, ge=0, lt=2**31)
    started: int | None = Field(None, ge=0, lt=2**63, description="Field 22 of /proc/PID/stat.")
    boot: str = Field("", max_length=64)
    namespace: str = Field("", max_length=40, description="The link /proc/self/ns/pid.")


class StepTold(Told):
    """The step of a program that asks."""

    key: str = Field(min_length=1, max_length=80)
    step: str = Field("", max_length=200)
    iteration: int = Field(0, ge=0, lt=2**31)
    execution: int = Field(1, ge=1, lt=2**31)
    restartable: bool = False


class AskTold(Told):
    """What is asked for. Sizes in bytes; ``memory`` auto: what runs of this job are known to need."""

    kind: str = "gpu"
    backend: str = "cuda"
    memory: Literal["exact", "auto"] = "exact"
    group_bytes: int = Field(0, ge=0, lt=2**60, description="Divided among the devices.")
    per_device_bytes: int = Field(0, ge=0, lt=2**60)
    min_devices: int = Field(1, ge=1, le=4096)
    max_devices: int = Field(1, ge=1, le=4096)
    exclusive: bool = False
    device_id: int | None = Field(None, ge=0, lt=2**31)
    prefer_max: bool = False
    even: bool = Field(True, description="false: divided by room.")


class InsideBody(Told):
    """One request. The same ``key`` again is the same request."""

    key: str = Key
    session: StepTold | None = None
    index: int = Field(0, ge=0, lt=2**31)
    process: ProcessTold = ProcessTold()
    ask: AskTold
    sees: list[str] | None = Field(None, max_length=4096, description="UUIDs; null: not known.")


class WithdrawBody(Told):
    """A request that is not wanted any more."""

    key: str = Key
    give_back: bool = Field(False, description="Let go of it where it was granted before.")


class NothingBody(Told):
    """Nothing that counts."""


class OutliveBody(Told):
    """What holds a lease after its job."""

    artifact: str = Field(min_length=1, max_length=200)
    seconds: float = Field(gt=0)


class EndBody(Told):
    """How a step ended."""

    execution: int = Field(1, ge=1, lt=2**31)
    outcome: str = Field("finished", max_length=40)


class InsideMember(Shape):
    """One place of a lease."""

    uuid: str
    device_id: int = Field(description="The number that people type.")
    node: str
    kind: str
    backend: str
    bytes: int


class InsideLease(Shape):
    """What was granted. ``members`` in the order of the grant."""

    id: int
    group_bytes: int
    per_device_bytes: int
    members: list[InsideMember]


class InsideRefusal(Shape):
    """Why it can never be granted."""

    code: str
    sentence: str
    arithmetic: list[str]


class MustFree(Shape):
    """How many bytes have to go from a device."""

    uuid: str
    bytes: int


class InsideNotice(Shape):
    """A lease, or all of a step, that was taken back."""

    session: str | None
    lease: int | None
    execution: int
    sentence: str
    seconds_left: float
    must_free: list[MustFree]
    final: bool


class InsideAnswer(Shape):
    """A request as it is now."""

    id: int
    state: Literal["waiting", "granted", "refused", "withdrawn", "revoked"]
    reasons: list[str] = Field(description="Why it waits, the leading reason first.")
    lease: InsideLease | None
    refusal: InsideRefusal | None
    revocation: InsideNotice | None
    notices: list[InsideNotice]


class InsideNotices(Shape):
    """What this job is to be told."""

    notices: list[InsideNotice]


class InsideDone(Shape):
    """It is known."""

    done: bool


class JobRequest(Shape):
    """One request of a job, in words."""

    id: int
    state: Literal["waiting", "granted", "refused", "withdrawn", "released", "revoked"]
    asks: str
    who: str = Field(description="The step or process that asked.")
    asked_at: Moment
    since: Moment = Field(description="When it came into this state.")
    got: str
    said: str = Field(description="Why it waits, was refused or ended.")
    reasons: list[str]
    cycle: list[str] = Field(description="Where jobs waited for each other: who held and wanted what.")
    artifact: str | None
    outlives_until: MaybeMoment
    revoked_until: MaybeMoment = Field(description="By when its holder has to leave.")
    still_measured: str = Field(description="What is measured yet of one that was taken back; empty: nothing.")


class JobRequests(Shape):
    """What a job asked for."""

    requests: list[JobRequest]
