"""What a job asks for, checked before anything is sent: amounts in GB (10^9 bytes), rounded up to a byte."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from enum import Enum
from typing import Any, NamedTuple, TypeVar, Union

GB = 1_000_000_000
Amount = Union[int, float]


class Device(str, Enum):
    """The kinds of device. On a CPU nothing is reserved."""

    CPU = "cpu"
    GPU = "gpu"
    TPU = "tpu"


class Backend(str, Enum):
    """The interfaces through which a program may use a device."""

    CUDA = "cuda"
    MPS = "mps"
    OPENCL = "opencl"
    ROCM = "rocm"
    XLA = "xla"
    XPU = "xpu"


class Ask(NamedTuple):
    """One request, as it is sent; two calls are the same when all of it is. ``memory`` is ``exact`` or ``auto``."""

    kind: str
    backend: str
    memory: str
    group_bytes: int
    per_device_bytes: int
    min_devices: int
    max_devices: int
    exclusive: bool
    device_id: int | None
    prefer_max: bool
    even: bool

    def __str__(self) -> str:
        amount = "memory as estimated" if self.memory == "auto" else gb(self.group_bytes)
        if self.per_device_bytes:
            each = f"{gb(self.per_device_bytes)} each"
            amount = f"{amount} and {each}" if self.group_bytes else each
        few, many = self.min_devices, self.max_devices
        where = f"a {self.kind.upper()}" if many == 1 else f"{few} to {many} {self.kind.upper()}s"
        if few == many > 1:
            where = f"{many} {self.kind.upper()}s"
        if self.device_id is not None:
            where = f"{self.kind}{self.device_id}"
        return f"{amount} on {where} ({self.backend.upper()}){', alone' if self.exclusive else ''}"


def single(device: object, backend: object, memory_gb: object, exclusive: object, device_id: object) -> Ask:
    """Return the ask for one device; ``memory_gb`` may be ``"auto"``."""
    auto = memory_gb == "auto" and isinstance(memory_gb, str)
    size = 0 if auto else to_bytes("memory_gb", memory_gb)
    return _checked(device, backend, size, 0, 1, 1, exclusive, device_id, False, True, auto)


def group(
    device: object,
    backend: object,
    group_memory_gb: object,
    per_device_memory_gb: object,
    max_devices: object,
    min_devices: object,
    prefer_max_devices: object,
    exclusive: object,
    even: object,
) -> Ask:
    """Return the ask for several devices; ``group_memory_gb`` may be ``"auto"``."""
    auto = group_memory_gb == "auto" and isinstance(group_memory_gb, str)
    whole = 0 if auto else to_bytes("group_memory_gb", group_memory_gb)
    each = to_bytes("per_device_memory_gb", per_device_memory_gb)
    few, many = counted("min_devices", min_devices), counted("max_devices", max_devices)
    return _checked(device, backend, whole, each, few, many, exclusive, None, prefer_max_devices, even, auto)


def _checked(
    device: object,
    backend: object,
    group_bytes: int,
    per_device_bytes: int,
    few: int,
    many: int,
    exclusive: object,
    device_id: object,
    prefer_max: object,
    even: object,
    auto: bool,
) -> Ask:
    kind, interface = member(Device, "device", device), member(Backend, "backend", backend)
    switches = {"exclusive": exclusive, "prefer_max_devices": prefer_max, "even": even}
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise TypeError(f"{name} is True or False, not {value!r}.")
    if kind is Device.CPU:
        raise ValueError("Nothing is reserved on a CPU: use tidegate.CPU_PLACEMENT.")
    if few > many:
        raise ValueError(f"min_devices is {few} and max_devices {many}: the least is above the most.")
    if not (group_bytes or per_device_bytes or exclusive or auto):
        raise ValueError("Nothing is asked for: give an amount of memory, or exclusive=True.")
    number = None if device_id is None else counted("device_id", device_id, least=0)
    memory = "auto" if auto else "exact"
    return Ask(
        kind.value, interface.value, memory, group_bytes, per_device_bytes, few, many, bool(exclusive), number,
        bool(prefer_max), bool(even),
    )  # fmt: skip


def shares(ask: Ask, count: int) -> tuple[int, ...]:
    """Return the bytes on each of ``count`` devices when they are divided evenly, the larger first."""
    each, larger = divmod(ask.group_bytes, count)
    each += ask.per_device_bytes
    return (each + 1,) * larger + (each,) * (count - larger)


def to_bytes(name: str, amount: object) -> int:
    """Return an amount in GB as bytes, rounded up; the number counts as it is printed, and zero is let through."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float)):
        raise TypeError(f"{name} is a number of GB, not {amount!r}.")
    exact = Decimal(str(amount))
    if not exact.is_finite() or exact < 0:
        raise ValueError(f"{name} is {amount}; it is 0 or more, and finite.")
    return int((exact * GB).to_integral_value(rounding=ROUND_CEILING))


def counted(name: str, value: object, least: int = 1) -> int:
    """Return a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, not {value!r}.")
    if value < least:
        raise ValueError(f"{name} is {value}; the least is {least}.")
    return value


_E = TypeVar("_E", bound=Enum)


def member(kinds: type[_E], name: str, value: object) -> _E:
    """Return the member that ``value`` is or names, in any case of letters."""
    known = ", ".join(str(one.value) for one in kinds)
    if not isinstance(value, (kinds, str)):
        raise TypeError(f"{name} is one of {known}; {value!r} is not.")
    try:
        return value if isinstance(value, kinds) else kinds(str(value).lower())
    except ValueError:
        raise ValueError(f"{name} is one of {known}; {value!r} is not.") from None


def gb(amount: int) -> str:
    """Return bytes as ``6.00 GB``; what would round to nothing is said in bytes."""
    return f"{amount / GB:.2f} GB" if amount >= GB // 100 or not amount else f"{amount} bytes"


def as_json(ask: Ask) -> dict[str, Any]:
    """Return the ask as it is sent."""
    return dict(ask._asdict())
