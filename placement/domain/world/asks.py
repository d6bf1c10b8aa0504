"""What is asked of the allocator: how many devices of which kind, how much of each, and where.

An amount left to be estimated is resolved to bytes before an ask is made of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from placement.domain.world.devices import Backend, Kind, switch, whole


@dataclass(frozen=True, slots=True)
class Ask:
    """A placement request.

    ``group_bytes`` is divided among the devices, ``per_device_bytes`` is taken on each. ``even`` False divides by
    room instead of equally; then ``per_device_bytes`` is the least that each device gets. Devices are on one node.
    ``device_id`` is the number of one declared device; ``node`` and ``label`` say where. ``prefer_max`` tries many
    devices before few.
    """

    kind: Kind
    backend: Backend
    group_bytes: int = 0
    per_device_bytes: int = 0
    min_devices: int = 1
    max_devices: int = 1
    exclusive: bool = False
    device_id: int | None = None
    prefer_max: bool = False
    even: bool = True
    node: str | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        self._check_types()
        if self.kind is Kind.CPU:
            raise ValueError("Nothing is reserved on a CPU: what runs there needs no placement.")
        for name, value in (("group_bytes", self.group_bytes), ("per_device_bytes", self.per_device_bytes)):
            if value < 0:
                raise ValueError(f"{name} is 0 or more, not {value}.")
        if not 1 <= self.min_devices <= self.max_devices:
            raise ValueError(
                f"From {self.min_devices} to {self.max_devices} devices cannot be had: "
                "the least is 1 or more, and the most is not below it."
            )
        if not (self.group_bytes or self.per_device_bytes or self.exclusive):
            raise ValueError("Nothing is asked for: give an amount of memory, or ask for the device alone.")
        if self.device_id is not None:
            if self.device_id < 0:
                raise ValueError(f"device_id is 0 or more, not {self.device_id}.")
            if self.max_devices != 1:
                raise ValueError(f"device_id names one device, and up to {self.max_devices} are asked for.")

    def _check_types(self) -> None:
        if not isinstance(self.kind, Kind):
            raise TypeError(f"kind is one of {', '.join(Kind)}, as a Kind; {self.kind!r} is not.")
        if not isinstance(self.backend, Backend):
            raise TypeError(f"backend is one of {', '.join(Backend)}, as a Backend; {self.backend!r} is not.")
        for name in ("group_bytes", "per_device_bytes", "min_devices", "max_devices"):
            whole(name, getattr(self, name))
        if self.device_id is not None:
            whole("device_id", self.device_id)
        for name in ("exclusive", "prefer_max", "even"):
            switch(name, getattr(self, name))
        for name in ("node", "label"):
            if not isinstance(getattr(self, name), str | None):
                raise TypeError(f"{name} is a name, not {getattr(self, name)!r}.")


def counts(ask: Ask) -> range:
    """Return the numbers of devices to try, in order."""
    if ask.prefer_max:
        return range(ask.max_devices, ask.min_devices - 1, -1)
    return range(ask.min_devices, ask.max_devices + 1)


def shares(ask: Ask, count: int) -> tuple[int, ...]:
    """Return the bytes on each of ``count`` devices, largest first, of an even division: one byte apart at most."""
    if not ask.min_devices <= count <= ask.max_devices:
        raise ValueError(f"{count} devices are not among the {ask.min_devices} to {ask.max_devices} asked for.")
    each, larger = divmod(ask.group_bytes, count)
    each += ask.per_device_bytes
    return (each + 1,) * larger + (each,) * (count - larger)
