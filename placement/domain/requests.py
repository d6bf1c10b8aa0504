"""What a job asks for: where it may run and whether it wants to be alone."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from functools import lru_cache


class Gpu(enum.StrEnum):
    NONE = "none"
    ONE = "one"


class Exclusive(enum.StrEnum):
    """Alone on its device, or alone on its machine (among jobs)."""

    NO = "no"
    DEVICE = "device"
    MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class Request:
    """A placement request for no device or one. ``node``, ``device`` (UUID) and ``among`` (UUIDs) None mean any."""

    gpu: Gpu = Gpu.NONE
    exclusive: Exclusive = Exclusive.NO
    node: str | None = None
    device: str | None = None
    among: frozenset[str] | None = None

    def __post_init__(self) -> None:
        if self.gpu is Gpu.NONE and (self.device is not None or self.exclusive is Exclusive.DEVICE):
            raise ValueError("A job without a device cannot name one or ask to be alone on one.")


@lru_cache(maxsize=4096)
def shared(gpu: Gpu, exclusive: Exclusive, node: str | None, device: str | None) -> Request:
    """Return the request; equal ones are one object, which many questions are then asked of only once."""
    return Request(gpu, exclusive, node, device)
