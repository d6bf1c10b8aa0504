"""What a submission says of how many devices it takes and what it reserves of them, and all that can be wrong there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from calibration.domain.resources import MOST
from placement.domain.world.requests import Gpu

MOST_DEVICES = 64
MEMORY = ("auto", "exact")
KINDS = ("gpu", "tpu")
BACKENDS = ("cuda", "mps", "opencl", "rocm", "xla", "xpu")


class Terms(Protocol):
    """The fields of a submission that are looked at here; bytes."""

    @property
    def gpu(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def min_devices(self) -> int: ...
    @property
    def max_devices(self) -> int: ...
    @property
    def prefer_max(self) -> bool: ...
    @property
    def memory(self) -> str: ...
    @property
    def per_device_memory(self) -> int | None: ...
    @property
    def group_memory(self) -> int | None: ...
    @property
    def declared_vram(self) -> int | None: ...
    @property
    def even(self) -> bool: ...
    @property
    def device_kind(self) -> str: ...
    @property
    def backend(self) -> str: ...


def problems(s: Terms) -> Iterator[tuple[str, str]]:
    """Yield (field, sentence) for what cannot be taken; no value of any type raises."""
    yield from _counts(s)
    yield from _memory(s)
    yield from _sort(s)


def _sort(s: Terms) -> Iterator[tuple[str, str]]:
    asked: dict[str, Any] = {"device_kind": s.device_kind, "backend": s.backend}
    for name, word in asked.items():
        words = KINDS if name == "device_kind" else BACKENDS
        if not isinstance(word, str) or (word and word.lower() not in words):
            yield name, f"It must be one of {', '.join(words)}, or empty for any."
        elif word and s.gpu == Gpu.NONE:
            yield name, "A job without a device has none of a kind or a backend; leave this empty."
    if not isinstance(s.even, bool):
        yield "even", "It must be true or false."
    elif not s.even and s.group_memory is None:
        yield "even", "Only memory for the group together can be divided by room: say how much, or leave this out."


def _counts(s: Terms) -> Iterator[tuple[str, str]]:
    counts: dict[str, Any] = {"min_devices": s.min_devices, "max_devices": s.max_devices}
    if not isinstance(s.prefer_max, bool):
        yield "prefer_max", "It must be true or false."
    for name, count in counts.items():
        if not _whole(count) or not 1 <= count <= MOST_DEVICES:
            yield name, f"It must be a whole number of devices from 1 to {MOST_DEVICES}."
            return
    if s.gpu != Gpu.GROUP:
        for name in ("min_devices", "max_devices"):
            if counts[name] != 1:
                yield name, "Only a group has a number of devices: ask for a group, or leave this out."
        if s.prefer_max is True:
            yield "prefer_max", "Only a group can prefer more devices: ask for a group, or leave this out."
    elif s.min_devices > s.max_devices:
        yield "max_devices", f"A group of at least {s.min_devices} devices cannot have {s.max_devices} at most."
    elif s.device and s.max_devices > 1:
        yield "device", "A group of several devices cannot name one; leave it empty, or ask for one device."


def _memory(s: Terms) -> Iterator[tuple[str, str]]:
    given: dict[str, Any] = {"per_device_memory": s.per_device_memory, "group_memory": s.group_memory}
    given = {name: amount for name, amount in given.items() if amount is not None}
    if not isinstance(s.memory, str) or s.memory not in MEMORY:
        yield "memory", "It must be auto, to be charged what a run is expected to need, or exact."
        return
    for name, amount in given.items():
        if not _whole(amount) or not 0 < amount <= MOST:
            yield name, f"It must be a whole number of bytes above 0 and at most {MOST:,}."
        elif s.memory == "auto":
            yield name, "An amount is reserved with memory exact; with auto leave it out."
    if s.memory == "auto":
        return
    if s.gpu == Gpu.NONE:
        yield "memory", "A job without a device has no memory of one to reserve."
    elif not given:
        yield "memory", "Say how much is to be reserved exactly: for each device, or for the group together."
    if "group_memory" in given and s.gpu != Gpu.GROUP:
        yield "group_memory", "Only a group has memory together; say how much for the one device."
    if s.declared_vram is not None:
        yield "declared_vram", "What is reserved exactly needs no guess; leave this empty."


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
