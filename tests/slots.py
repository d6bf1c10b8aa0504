"""Devices and asks in decimal GB, as the tables of vectors write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from placement.domain.leasing.allocator import Answer, Granted
from placement.domain.leasing.leases import Lease
from placement.domain.leasing.slots import Slot
from placement.domain.world.asks import Ask
from placement.domain.world.devices import Backend, DeviceKey, Kind, gb_to_bytes_down, gb_to_bytes_up

GB = 10**9


def a_slot(id: int, gb: float = 8, *, node: str = "atlas", **more: Any) -> Slot:
    """Return an idle CUDA GPU that no probe reads."""
    kind = more.pop("kind", Kind.GPU)
    backends = more.pop("backends", (Backend.CUDA,))
    return Slot((node, f"{kind.upper()}-{id}"), id, kind, backends, gb_to_bytes_down(gb), **more)


def slots(*gb: float, alone: tuple[int, ...] = ()) -> list[Slot]:
    """Return GPUs 0, 1, … of these sizes; those in ``alone`` are for one holder at a time."""
    return [a_slot(i, size, exclusive_only=i in alone) for i, size in enumerate(gb)]


def an_ask(gb: float = 0, *, count: int | None = None, **more: Any) -> Ask:
    """Return an ask for CUDA GPUs; ``bytes`` in place of GB, ``count`` for as many devices and no other number."""
    if count is not None:
        more |= {"min_devices": count, "max_devices": count}
    size = more.pop("bytes", None)
    size = gb_to_bytes_up(gb, zero=True) if size is None else size
    return Ask(more.pop("kind", Kind.GPU), more.pop("backend", Backend.CUDA), group_bytes=size, **more)


def members(answer: Answer) -> list[tuple[int, int]]:
    """Return the (id, bytes) of a grant, in its order."""
    assert isinstance(answer, Granted), answer
    return [(member.id, member.bytes) for member in answer.members]


def check_grant(before: Mapping[DeviceKey, Slot], after: Mapping[DeviceKey, Slot], lease: Lease, ask: Ask) -> None:
    """Check a grant against the slots that it was taken from."""
    assert ask.min_devices <= len(lease.parts) <= ask.max_devices
    assert lease.bytes == ask.group_bytes + len(lease.parts) * ask.per_device_bytes
    for part in lease.parts:
        was, slot = before[part.device], after[part.device]
        assert slot.leased == was.leased + part.bytes <= slot.declared
        assert was.measured is None or part.bytes <= was.measured
        assert not was.alone
        assert not part.alone or was.leases == 0
        assert part.alone == (ask.exclusive or was.exclusive_only)
