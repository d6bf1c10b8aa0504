from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from placement.api.shapes.judgement import Held
from placement.api.shapes.kinds import Body, Bytes, Capacity, MaybeMoment, Query, Shape
from placement.api.shapes.queue import Pool

Name = Annotated[str, StringConstraints(strip_whitespace=True)]


class Device(Shape):
    """A device that an admin declared, and its newest reading."""

    id: int
    uuid: str
    node: str
    name: str
    index: int
    kind: str
    backend: str = Field(description="The first of its backends.")
    backends: list[str] = Field(description="A request for any of them means it.")
    model: str
    declared: int = Field(description="Bytes that jobs may take.")
    exclusive_only: bool
    draining: bool
    measurable: bool = Field(description="False: no probe can read it; it is gated on its declaration alone.")
    by_hand: bool = Field(description="An admin declared it; no probe found it.")
    any_gpu: bool = Field(description="Nobody measures it, and yet jobs that ask for any GPU may be put on it.")
    closed: str = Field(description="Why nothing starts there: a probe found another with its driver's number.")
    driver_number: int | None = Field(description="Its driver's number for it; null: its index.")
    simulated: bool
    parent: str = Field(description="UUID of the card that this MIG instance is a part of; empty: of none.")
    heading: bool = Field(description="Its MIG instances are the devices; it takes no job itself.")
    shares: bool = Field(description="It has no memory of its own: its pool is the node's RAM.")
    one_pool: bool = Field(description="An admin said that it shares the node's RAM.")
    held: Held | None
    alone: int | None = Field(description="The job that has it alone: nothing else starts there, whatever is free.")
    pool: Pool | None = Field(description="null: not read yet, or, where it is not measurable, read by nobody.")


class Node(Shape):
    """A machine with a worker, its RAM and its devices."""

    id: int
    name: str
    ram_declared: Bytes = Field(description="Bytes that jobs may take; null: all there is.")
    ram_high: float | None = Field(description="Share of RAM from which nothing starts; null: the knob's.")
    ram_low: float | None = Field(description="Share of RAM below which it does again; null: the knob's.")
    watch_policy: str = Field(description="The watchdog's: warn, risk or cap; empty: the knob's.")
    ram_pressure: bool
    draining: bool
    held: Held | None
    disk_free: Bytes
    tick_ms: float | None = Field(description="What one look around takes.")
    broker_away_since: MaybeMoment
    capacity_note: str
    alone: int | None = Field(description="The job that has it alone: nothing else starts there, whatever is free.")
    pool: Pool | None
    devices: list[Device]


class NodeList(Shape):
    """All nodes, by name."""

    nodes: list[Node]


class NodeAnswer(Shape):
    """A node."""

    node: Node


class NodeSaid(Shape):
    """What was done, and the node after it."""

    message: str
    node: Node


class DeviceList(Shape):
    """All devices, by node and index."""

    devices: list[Device]


class DeviceAnswer(Shape):
    """A device."""

    device: Device


class DeviceSaid(Shape):
    """What was done, and the device after it."""

    message: str
    device: Device


class Declared(Body):
    """What is declared, or a part of it."""

    def given(self) -> dict[str, Any]:
        """Return the fields that were sent."""
        return {name: getattr(self, name) for name in self.model_fields_set if name != "expected"}


class DeviceDeclared(Declared):
    """What is declared of a device."""

    name: Name = Field("", min_length=1, max_length=40)
    declared: Capacity = None
    exclusive_only: bool = False
    one_pool: bool = Field(False, description="Of one that was found.")
    backends: list[str] = Field([], max_length=16, description="cuda, mps, opencl, rocm, xla, xpu; one or several.")
    index: int = Field(0, ge=0, description="The number that people type, of one that was declared by hand.")
    any_gpu: bool = Field(False, description="Jobs that ask for any GPU may be put on it; of one declared by hand.")
    driver_number: int | None = Field(None, description="Its driver's number for it; null: the index.")


class DeviceBody(DeviceDeclared):
    """A change of a device's declaration; what is left out stays."""

    expected: DeviceDeclared | None = Field(
        None, description="What you saw of it: the change is refused where somebody else changed that meanwhile."
    )

    def seen(self) -> dict[str, Any]:
        """Return what is expected to be there still."""
        return self.expected.given() if self.expected else {}


class DeviceMade(Declared):
    """A device that no probe finds. Without a name it is called by its kind and number."""

    kind: str = Field(max_length=8, description="gpu or tpu.")
    backends: list[str] = Field(max_length=16, description="cuda, mps, opencl, rocm, xla, xpu; one or several.")
    index: int = Field(description="The number that people type; once on a node for each kind.")
    declared: Capacity = None
    name: Name = Field("", max_length=40)
    exclusive_only: bool = Field(False, description="For one holder at a time.")
    any_gpu: bool = Field(False, description="Jobs that ask for any GPU may be put on it, though nothing measures it.")
    driver_number: int | None = Field(None, description="Its driver's number for it; null: the index.")


class DeviceRemoved(Shape):
    """What was done."""

    message: str


class NodeDeclared(Declared):
    """What is declared of a node."""

    ram_declared: Capacity = Field(None, description="Bytes, or text with a unit; null: all there is.")
    ram_high: float | None = Field(None, description="A share; null: the knob's.")
    ram_low: float | None = Field(None, description="A share; null: the knob's.")
    watch_policy: str = Field("", description="The watchdog's: warn, risk or cap; empty: the knob's.")


class NodeBody(NodeDeclared):
    """A change of a node's declaration; what is left out stays."""

    expected: NodeDeclared | None = Field(
        None, description="What you saw of it: the change is refused where somebody else changed that meanwhile."
    )

    def seen(self) -> dict[str, Any]:
        """Return what is expected to be there still."""
        return self.expected.given() if self.expected else {}


class Effects(Shape):
    """What a change would do to running jobs, or why it cannot be made; nothing was changed."""

    effects: list[str]


class DrainBody(Body):
    """Whether nothing new starts while what runs may end."""

    on: bool = True


class SeriesAsked(Query):
    """Which stretch of a pool's history."""

    range: Literal["10m", "1h", "24h", "30d"] = "10m"
    since: int | None = Field(None, ge=0, lt=10**11, description="Unix seconds: only what came after.")


class Series(Shape):
    """A pool's history; lists are of equal length, bytes, null is a gap."""

    step: int = Field(description="Seconds.")
    at: list[int] = Field(description="Unix seconds.")
    total: list[int | None]
    used: list[int | None]
    booked: list[int | None] = Field(description="What jobs are charged.")
    kept: list[int | None] = Field(description="What is kept free.")
    owners: dict[str, list[int | None]] = Field(description="By owner: job:12, and Tidegate itself.")
