"""What a job asks for: where it may run, on how many devices, and whether it wants to be alone."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache


class Gpu(enum.StrEnum):
    NONE = "none"
    ONE = "one"
    GROUP = "group"


class Exclusive(enum.StrEnum):
    """Alone on its device, or alone on its machine (among jobs)."""

    NO = "no"
    DEVICE = "device"
    MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class Request:
    """A placement request for no device, one, or a group of one node. ``node``, ``device`` (UUID) None mean any.

    A group has from ``min_devices`` to ``max_devices``, as few as fit unless ``prefer_max``. Bytes that are given here
    are reserved exactly, for each device and for the group together; without, each device is charged the estimate.
    What is for the group is divided evenly, or without ``even`` by the room of its devices. ``kind`` and ``backend``
    are words of a device's declaration, None: any. ``engine`` "" means no container, else which engine runs it:
    "docker", "podman" or "any". ``among`` are the UUIDs that come into question, None: all. ``inside`` is the running
    job that asks for more, else 0: what it uses without holding any of a device does not keep it out there itself.
    """

    gpu: Gpu = Gpu.NONE
    exclusive: Exclusive = Exclusive.NO
    node: str | None = None
    device: str | None = None
    min_devices: int = 1
    max_devices: int = 1
    prefer_max: bool = False
    per_device_memory: int | None = None
    group_memory: int | None = None
    even: bool = True
    kind: str | None = None
    backend: str | None = None
    engine: str = ""
    among: frozenset[str] | None = None
    inside: int = 0

    def __post_init__(self) -> None:
        if self.gpu is Gpu.NONE and (self.device is not None or self.exclusive is Exclusive.DEVICE or self.exact):
            raise ValueError("A job without a device cannot name one, reserve memory of one or be alone on one.")
        if not 1 <= self.min_devices <= self.max_devices:
            raise ValueError(f"From {self.min_devices} to {self.max_devices} devices is no number of devices.")
        if self.gpu is not Gpu.GROUP and (self.max_devices > 1 or self.prefer_max or self.group_memory is not None):
            raise ValueError("Only a group takes several devices, or memory for all of them together.")
        if self.device is not None and self.max_devices > 1:
            raise ValueError("A group of several devices cannot name one device.")
        if not self.even and self.group_memory is None:
            raise ValueError("Only memory for all of a group can be divided by room.")
        if self.gpu is Gpu.NONE and (self.kind or self.backend):
            raise ValueError("A job without a device has no kind of one and no backend.")
        if self.exact and self.largest_share(self.min_devices) < 1:
            raise ValueError("Memory that is reserved exactly is at least one byte.")

    @property
    def names(self) -> bool:
        """Return whether it says which devices it means: by their UUIDs, their kind or their backend."""
        return (self.device or self.kind or self.backend or self.among) is not None

    @property
    def exact(self) -> bool:
        """Return whether memory is reserved exactly: a promise, and not what a run is expected to need."""
        return self.per_device_memory is not None or self.group_memory is not None

    def shares(self, devices: int) -> tuple[int, ...]:
        """Return the exact bytes of so many devices, largest first: the group's evenly, and each device's own."""
        even, more = divmod(self.group_memory or 0, devices)
        own = self.per_device_memory or 0
        return tuple(even + own + (number < more) for number in range(devices))

    def largest_share(self, devices: int) -> int:
        """Return the most exact bytes that one of so many devices is asked for."""
        return self.shares(devices)[0]


def fewer(request: Request, devices: int) -> Request:
    """Return a group of at least so many devices instead; one of exactly so many stays one of an exact number."""
    exactly = request.min_devices == request.max_devices
    return replace(request, min_devices=devices, max_devices=devices if exactly else request.max_devices)


@lru_cache(maxsize=4096)
def shared(
    gpu: Gpu,
    exclusive: Exclusive,
    node: str | None,
    device: str | None,
    *group: int | bool | str | None,
    engine: str = "",
) -> Request:
    """Return the request; equal ones are one object, which many questions are then asked of only once.

    ``group`` are the fields of a Request from ``min_devices`` to ``backend``.
    """
    return Request(gpu, exclusive, node, device, *group, engine=engine)  # type: ignore[arg-type, misc]  # each of its own type


def by_room(amount: int, rooms: Sequence[int]) -> tuple[int, ...]:
    """Return the amount divided in proportion to rooms; no part is above its room where all of them have room for it.

    The bytes that rounding leaves go one each to those that it took most from. Without any room it is divided evenly.
    """
    if sum(rooms) <= 0:
        rooms = [1] * len(rooms)
    total = sum(rooms)
    parts = [amount * room // total for room in rooms]
    lost = sorted(range(len(rooms)), key=lambda number: (-(amount * rooms[number] % total), number))
    for number in lost[: amount - sum(parts)]:
        parts[number] += 1
    return tuple(parts)
