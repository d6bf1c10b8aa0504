"""Places on devices, as a job has them. Immutable, compared by identity; one made by hand reserves nothing."""

from __future__ import annotations

from typing import Any, Iterator, Sequence

from . import seen
from .asks import Backend, Device, counted, gb, member
from .leases import Lease


class _Fixed:
    """What placements and groups have in common: they cannot be changed, and copies are the thing itself."""

    __slots__ = ()
    _lease: Lease | None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A placement cannot be changed: {name}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"A placement cannot be changed: {name}.")

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    @property
    def lease_id(self) -> int | None:
        """Return the number of the lease behind it; None for a description."""
        return None if self._lease is None else self._lease.number

    @property
    def reserved(self) -> bool:
        """Return whether a lease stands behind it, as far as this process knows."""
        return self._lease is not None and self._lease.held

    def outlive(self, artifact: str, seconds: float) -> None:
        """Have the lease go on after this process for a named artifact, for so many seconds at most."""
        if self._lease is None or not self._lease.held:
            raise ValueError(f"Nothing is reserved here that could outlive the job for {artifact!r}.")
        if not artifact or isinstance(seconds, bool) or not seconds > 0:
            raise ValueError(f"An artifact has a name and a time above 0, not {artifact!r} and {seconds!r}.")
        body = {"artifact": artifact, "seconds": seconds}
        self._lease.service.post(f"leases/{self._lease.number}/outlive", body)

    def _enter(self) -> None:
        if self._lease is not None and self._lease.mine:
            self._lease.entered += 1

    def __exit__(self, *error: object) -> None:
        if self._lease is not None and self._lease.mine:
            self._lease.entered -= 1
            if self._lease.entered == 0:
                self._lease.let_go()


class Placement(_Fixed):
    """A place on one device, in bytes. ``local_index`` is what this process calls it: ``cuda:{local_index}``."""

    __slots__ = ("__weakref__", "_lease", "_position", "backend", "device", "device_id", "memory_bytes", "node", "uuid")
    device: Device
    backend: Backend | None
    device_id: int | None
    memory_bytes: int
    uuid: str
    node: str
    _position: int | None

    def __init__(
        self,
        device: Device | str = Device.CPU,
        backend: Backend | str | None = None,
        device_id: int | None = None,
        memory_bytes: int = 0,
        *,
        uuid: str = "",
        node: str = "",
    ) -> None:
        kind = member(Device, "device", device)
        interface = None if backend is None else member(Backend, "backend", backend)
        number = None if device_id is None else counted("device_id", device_id, least=0)
        size = counted("memory_bytes", memory_bytes, least=0)
        if kind is Device.CPU and (interface is not None or number is not None or size):
            raise ValueError("A place on the CPU has no backend, no device_id and no bytes.")
        if kind is not Device.CPU and (interface is None or number is None):
            raise ValueError(f"A place on a {kind.value.upper()} needs a backend and a device_id.")
        values = (kind, interface, number, size, uuid, node, None, None)
        for name, value in zip(_FIELDS, values):
            object.__setattr__(self, name, value)

    @property
    def placements(self) -> tuple[Placement, ...]:
        return (self,)

    @property
    def primary(self) -> Placement:
        return self

    @property
    def device_ids(self) -> tuple[int, ...]:
        return () if self.device_id is None else (self.device_id,)

    @property
    def reserved_memory_bytes(self) -> int:
        return self.memory_bytes

    @property
    def local_index(self) -> int | None:
        """Return its position among the devices that this process sees; None where it is not one of them."""
        if self._position is not None or not self.uuid or self.backend is None:
            return self._position
        return seen.local_index(self.uuid, self.backend.value)

    def __enter__(self) -> Placement:
        self._enter()
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as a description: the lease stays where it was granted."""
        return _described, (self.device.value, self.backend and self.backend.value, *_rest(self))

    def __repr__(self) -> str:
        if self.device is Device.CPU:
            return "<Placement on the CPU>"
        held = f"lease {self.lease_id}" if self.reserved else "not reserved"
        return f"<Placement of {gb(self.memory_bytes)} on {self.device.value}{self.device_id}, {held}>"


_FIELDS = ("device", "backend", "device_id", "memory_bytes", "uuid", "node", "_lease", "_position")


def _rest(one: Placement) -> tuple[Any, ...]:
    return one.device_id, one.memory_bytes, one.uuid, one.node


def _described(device: str, backend: str | None, number: int | None, size: int, uuid: str, node: str) -> Placement:
    return CPU_PLACEMENT if device == "cpu" else Placement(device, backend, number, size, uuid=uuid, node=node)


class PlacementGroup(_Fixed, Sequence[Placement]):
    """Places that were granted together, on different devices of one kind and one backend, under one lease."""

    __slots__ = (
        "__weakref__",
        "_lease",
        "group_memory_bytes",
        "per_device_memory_bytes",
        "placements",
        "prefer_max_devices",
    )
    placements: tuple[Placement, ...]
    group_memory_bytes: int
    per_device_memory_bytes: int
    prefer_max_devices: bool

    def __init__(
        self,
        placements: Sequence[Placement],
        *,
        group_memory_bytes: int,
        per_device_memory_bytes: int = 0,
        prefer_max_devices: bool = False,
    ) -> None:
        members = tuple(placements)
        _check_group(members, group_memory_bytes, per_device_memory_bytes)
        values = (members, group_memory_bytes, per_device_memory_bytes, prefer_max_devices, members[0]._lease)
        names = ("placements", "group_memory_bytes", "per_device_memory_bytes", "prefer_max_devices", "_lease")
        for name, value in zip(names, values):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.placements)

    def __iter__(self) -> Iterator[Placement]:
        return iter(self.placements)

    def __getitem__(self, index: Any) -> Any:
        return self.placements[index]

    @property
    def primary(self) -> Placement:
        """Return the member that was chosen first: the tightest device among those with a largest share."""
        return self.placements[0]

    @property
    def device(self) -> Device:
        return self.primary.device

    @property
    def backend(self) -> Backend | None:
        return self.primary.backend

    @property
    def device_ids(self) -> tuple[int, ...]:
        return tuple(number for one in self.placements for number in one.device_ids)

    @property
    def local_indices(self) -> tuple[int | None, ...]:
        return tuple(one.local_index for one in self.placements)

    @property
    def reserved_memory_bytes(self) -> int:
        return sum(one.memory_bytes for one in self.placements)

    def __enter__(self) -> PlacementGroup:
        self._enter()
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        sizes = (self.group_memory_bytes, self.per_device_memory_bytes, self.prefer_max_devices)
        return _described_group, (self.placements, *sizes)

    def __repr__(self) -> str:
        return f"<PlacementGroup of {', '.join(map(repr, self.placements))}>"


def _described_group(members: Sequence[Placement], whole: int, each: int, prefer: bool) -> PlacementGroup:
    return PlacementGroup(members, group_memory_bytes=whole, per_device_memory_bytes=each, prefer_max_devices=prefer)


def _check_group(members: tuple[Placement, ...], whole: int, each: int) -> None:
    if not members or not all(isinstance(one, Placement) and one.device is not Device.CPU for one in members):
        raise ValueError("A group has one placement or more, each on an accelerator.")
    if len({(one.node, one.device_id) for one in members}) < len(members):
        raise ValueError(f"A device is in the group twice: {[one.device_id for one in members]}.")
    if len({(one.device, one.backend) for one in members}) > 1:
        raise ValueError("The members of a group are of one kind of device and one backend.")
    if len({id(one._lease) for one in members}) > 1:
        raise ValueError("The members of a group are under one lease.")
    total, said = sum(one.memory_bytes for one in members), whole + len(members) * each
    if total != said:
        raise ValueError(f"The members have {total} bytes; {whole} and {each} on each of {len(members)} are {said}.")


def granted(members: list[dict[str, Any]], lease: Lease | None) -> tuple[Placement, ...]:
    """Return placements of what was granted, all under one lease. A ``position`` stands for a place without UUID."""
    made = []
    for one in members:
        uuid, node = one.get("uuid", ""), one.get("node", "")
        place = Placement(one["kind"], one["backend"], one["device_id"], one["bytes"], uuid=uuid, node=node)
        object.__setattr__(place, "_lease", lease)
        object.__setattr__(place, "_position", one.get("position"))
        made.append(place)
    return tuple(made)


CPU_PLACEMENT = Placement()
"""The place on the CPU: no bytes, no lease. Pickled and read again, it is itself."""


class Data:
    """A payload and where it is: it keeps the placement, and so the lease, as long as it is kept itself."""

    __slots__ = ("__weakref__", "placement", "value")

    def __init__(self, value: Any, placement: Placement | PlacementGroup = CPU_PLACEMENT) -> None:
        kinds: tuple[type[Any], ...] = (Placement, PlacementGroup)
        if not isinstance(placement, kinds):
            raise TypeError(f"The place of a payload is a Placement or a PlacementGroup, not {placement!r}.")
        self.value = value
        self.placement = placement

    def __repr__(self) -> str:
        return f"<Data {type(self.value).__name__} at {self.placement!r}>"
