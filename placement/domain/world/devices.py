"""What an admin declares of a device, and amounts in GB (10^9 bytes) as bytes."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from calibration.domain.resources import from_gb_capacity, from_gb_request

DeviceKey = tuple[str, str]
"""A device as bookings know it: its node's name and its UUID. The id that people type is another thing."""


class Kind(enum.StrEnum):
    CPU = "cpu"
    GPU = "gpu"
    TPU = "tpu"


class Backend(enum.StrEnum):
    """The interface through which a program uses a device; any kind but a CPU may offer any of them."""

    CUDA = "cuda"
    MPS = "mps"
    OPENCL = "opencl"
    ROCM = "rocm"
    XLA = "xla"
    XPU = "xpu"


@dataclass(frozen=True, slots=True)
class Device:
    """One declaration. ``id`` is the number that people type, ``capacity`` the bytes that leases may take of it.

    A CPU has neither backends nor an id, and needs no capacity: None then, for no limit of its own.
    """

    kind: Kind = Kind.CPU
    backends: tuple[Backend, ...] = ()
    id: int | None = None
    capacity: int | None = None
    exclusive_only: bool = False

    def __post_init__(self) -> None:
        self._check_types()
        if len(set(self.backends)) < len(self.backends):
            raise ValueError(f"A backend is listed twice: {', '.join(self.backends)}.")
        if self.id is not None and self.id < 0:
            raise ValueError(f"The id of a device is 0 or more, not {self.id}.")
        if self.capacity is not None and self.capacity < 1:
            raise ValueError(
                f"A capacity of {self.capacity} bytes is none: it is 1 byte or more. To keep everybody away, drain it."
            )
        if self.kind is Kind.CPU:
            if self.backends or self.id is not None or self.exclusive_only:
                raise ValueError("A CPU has no backend and no id, and is never for one holder alone.")
        elif not self.backends or self.id is None or self.capacity is None:
            raise ValueError(f"A {self.kind.upper()} needs at least one backend, an id and a capacity.")

    def _check_types(self) -> None:
        if not isinstance(self.kind, Kind):
            raise TypeError(f"kind is one of {', '.join(Kind)}, as a Kind; {self.kind!r} is not.")
        if not isinstance(self.backends, tuple) or not all(isinstance(b, Backend) for b in self.backends):
            raise TypeError(f"backends is a tuple of Backend ({', '.join(Backend)}), not {self.backends!r}.")
        for name, value in (("id", self.id), ("capacity", self.capacity)):
            if value is not None:
                whole(name, value)
        switch("exclusive_only", self.exclusive_only)


def declare(
    kind: Kind = Kind.CPU,
    backends: tuple[Backend, ...] = (),
    id: int | None = None,
    memory_gb: float | None = None,
    exclusive_only: bool = False,
) -> Device:
    """Return the declaration with its capacity given in GB, rounded down to a byte."""
    capacity = None if memory_gb is None else gb_to_bytes_down(memory_gb)
    return Device(kind, backends, id, capacity, exclusive_only)


def declared(devices: Device | tuple[Device, ...] = ()) -> tuple[Device, ...]:
    """Return the devices of one node: each (kind, id) once, one CPU, which is added where none is declared."""
    given = (devices,) if isinstance(devices, Device) else devices
    if not isinstance(given, tuple) or not all(isinstance(d, Device) for d in given):
        raise TypeError(f"The devices of a node are one Device or a tuple of them, not {given!r}.")
    seen: set[tuple[Kind, int | None]] = set()
    for device in given:
        if (device.kind, device.id) in seen:
            twice = "The CPU" if device.id is None else f"{device.kind.upper()} {device.id}"
            raise ValueError(f"{twice} is declared twice.")
        seen.add((device.kind, device.id))
    return given if (Kind.CPU, None) in seen else (*given, Device())


def gb_to_bytes_up(gb: float, *, zero: bool = False) -> int:
    """Return a requested amount in bytes, rounded up; the number counts as it is printed. 0 only where ``zero``.

    Raises TypeError for what is no number, ValueError for an amount that cannot be asked for.
    """
    switch("zero", zero)
    _number(gb)
    if gb == 0:
        if not zero:
            raise ValueError("0 GB cannot be asked for here; ask for more than 0.")
        return 0
    return from_gb_request(gb)


def gb_to_bytes_down(gb: float) -> int:
    """Return a capacity in bytes, rounded down; the number counts as it is printed. At least 1 byte.

    Raises TypeError for what is no number, ValueError for an amount that is no capacity.
    """
    _number(gb)
    if (found := from_gb_capacity(gb)) < 1:
        raise ValueError(f"{gb} GB is less than one byte; a capacity is at least 0.000000001 GB.")
    return found


def whole(name: str, value: object) -> int:
    """Return ``value`` if it is a whole number; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {value!r}.")
    return value


def switch(name: str, value: object) -> None:
    """Raise TypeError unless ``value`` is True or False itself."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} is True or False, not {value!r}.")


def _number(gb: object) -> None:
    if isinstance(gb, bool) or not isinstance(gb, int | float):
        raise TypeError(f"An amount of memory is a number of GB, not {gb!r}.")
