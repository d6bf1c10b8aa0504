"""A submission as it is sent."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from placement.api.shapes.kinds import Amount, Body, FormKey
from placement.domain.submitting import sweeps, terms, usual_placement
from placement.domain.submitting.submission import Submission
from placement.forms.submit import first_line

_TIES = 'It must be a list of jobs: 12, or {"job": 12, "when": "ok"}; when is ok, any or failed.'


class After(Body):
    """A job that has to end first, and how."""

    job: int = Field(ge=1, lt=2**63)
    when: Literal["ok", "any", "failed"] = "ok"


def _word(asked: Any) -> Any:
    """Return the name of an end as the API spells it, of what pages and messages write: "out of memory"."""
    return asked.strip().lower().replace(" ", "_") if isinstance(asked, str) else asked


class SubmissionBody(Body):
    """One of ``command``, ``argv`` and ``workload`` says what to run; all else may be left out, or be null."""

    command: str | None = Field(None, description="Given to bash.")
    argv: list[str] | None = Field(None, min_length=1, description="The program and its arguments.")
    workload: str | None = Field(None, description="The name of a workload; params fill its command.")
    params: dict[str, Any] | None = Field(None, description="Values of the workload's parameters.")
    name: str | None = Field(None, description="Left out: the start of the command.")
    note: str | None = None
    cwd: str | None = Field(None, description="Left out: the home directory of the service's account.")
    setup: str | None = Field(None, description="A line that bash runs before the command.")
    environment: dict[str, str] | None = Field(None, description="Sealed at once; shown to nobody.")
    workers: int | None = None
    gpu: str | None = Field(
        None, description="none, one or group; as the workload says where left out, as all of devices."
    )
    exclusive: str | None = Field(None, description="no, device or machine.")
    reserves: bool | None = Field(None, description="It asks for more devices while it runs: it sees all of its node.")
    node: str | None = None
    device: str | None = Field(None, description="A device's UUID, or its name where only one has it: gpu0.")
    min_devices: int | None = Field(None, description="Of a group; left out: 1.")
    max_devices: int | None = Field(None, description="Of a group; left out: as many as min_devices.")
    prefer_max: bool | None = Field(None, description="As many devices as fit, where a group would have as few.")
    memory: str | None = Field(None, description="auto: the estimate, for each device; exact: what follows.")
    per_device_memory: Amount = None
    group_memory: Amount = None
    even: bool | None = Field(None, description="false: group_memory is divided by the room of each device.")
    device_kind: str | None = Field(None, description="gpu or tpu; left out: any.")
    backend: str | None = Field(None, description="cuda, mps, opencl, rocm, xla or xpu; left out: any.")
    declared_ram: Amount = None
    declared_vram: Amount = None
    time_limit_s: float | None = None
    priority: int | None = Field(None, description="Above 0: for operators.")
    image: str | None = Field(None, description="Its container's image; left out: the workload's, or no container.")
    engine: str | None = Field(None, description="docker or podman; left out: the first that its node has.")
    after: list[int | After] | None = Field(
        None,
        description="Jobs that have to end first: ok: it completed; any: it ended; failed: it ended badly.",
    )
    not_before: str | None = Field(None, description="ISO 8601 with a zone: it starts no earlier.")
    array: int | None = Field(None, description="So many members; {index} in the command is 0, 1, 2 …")
    array_limit: int | None = Field(None, description="So many members run at once.")
    sweep: str | dict[str, Any] | None = Field(
        None,
        description='Values by name, of which each combination makes a job: {"lr": [0.1, 0.01], "n": "1..5"}.',
    )
    sweep_same: list[str] | None = Field(None, description="Names of the sweep whose value does not change memory.")
    retry_times: int | None = Field(None, description="So many further tries; 0 overrides the workload's.")
    retry_on: list[Annotated[str, BeforeValidator(_word)]] | None = Field(
        None, description="After which ends: failed, out_of_memory, cap_exceeded, lost, start_failed, timed_out."
    )
    retry_wait_s: float | None = Field(None, description="Before the first further try; twice as long each time.")
    form_key: FormKey = None

    @field_validator("not_before")
    @classmethod
    def _moment(cls, text: str | None) -> str | None:
        if text is not None:
            terms.parse_moment(text, None)  # its ValueError is the sentence
        return text

    @field_validator("sweep")
    @classmethod
    def _sweep(cls, asked: Any) -> Any:
        return None if asked is None else sweeps.read(asked)  # its ValueError is the sentence

    def submission(self, usual: dict[str, Any]) -> Submission:
        """Return what is asked for, over what its workload starts from."""
        said = self.model_dump(exclude_none=True, exclude={"form_key", "after"})
        values = {**usual_placement.beside(usual, said), **said}
        if self.argv is not None:
            values["argv"] = tuple(self.argv)
        if self.params is not None:
            values["params"] = {k: v if isinstance(v, str) else json.dumps(v) for k, v in self.params.items()}
        if self.sweep_same is not None:
            values["sweep_same"] = tuple(self.sweep_same)
        if self.retry_on is not None:
            values["retry_on"] = tuple(self.retry_on)
        if self.not_before is not None:
            values["not_before"] = terms.parse_moment(self.not_before, None)
        if self.after is not None:
            values["after"] = tuple((a.job, a.when) if isinstance(a, After) else (a, "ok") for a in self.after)
        if values.get("gpu") == "group" and self.max_devices is None and self.min_devices is not None:
            values["max_devices"] = self.min_devices
        if not values.get("name"):
            program = self.argv[0][:60] if self.argv else ""
            values["name"] = self.workload or first_line(self.command or "") or program
        return Submission(**values)
