"""What a job calls: each returns a placement, waits for it, or says why there can be none."""

from __future__ import annotations

from typing import Any, Union

from . import outside, service, waiting
from .asks import Amount, Ask, Backend, Device, group, single
from .leases import Lease
from .placements import Placement, PlacementGroup, granted

Memory = Union[Amount, str]


def reserve(
    *,
    device: Device | str,
    backend: Backend | str,
    memory_gb: Memory,
    exclusive: bool = False,
    device_id: int | None = None,
    timeout: float | None = None,
) -> Placement:
    """Reserve a place on one device. ``memory_gb`` (10^9 bytes) is a promise; ``"auto"`` leaves it to be estimated.

    ``exclusive``: nobody else there. ``device_id``: that one only. Waits ``timeout`` seconds at most (None: as long
    as it takes), then raises TimedOut; raises Impossible where no waiting helps.
    """
    ask = single(device, backend, memory_gb, exclusive, device_id)
    members, lease, _ = _obtained(ask, timeout)
    return granted(members, lease)[0]


def cuda(
    memory_gb: Memory, *, exclusive: bool = False, device_id: int | None = None, timeout: float | None = None
) -> Placement:
    """Reserve a place on one CUDA GPU; as ``reserve``."""
    return reserve(
        device=Device.GPU,
        backend=Backend.CUDA,
        memory_gb=memory_gb,
        exclusive=exclusive,
        device_id=device_id,
        timeout=timeout,
    )


def reserve_group(
    *,
    device: Device | str,
    backend: Backend | str,
    group_memory_gb: Memory = 0,
    per_device_memory_gb: Amount = 0,
    max_devices: int,
    min_devices: int = 1,
    prefer_max_devices: bool = False,
    exclusive: bool = False,
    even: bool = True,
    timeout: float | None = None,
) -> PlacementGroup:
    """Reserve places on several devices, all or none. ``group_memory_gb`` is divided, ``per_device_memory_gb`` on each.

    ``even`` False divides by the room of the devices. Few devices are tried before many, unless
    ``prefer_max_devices``.
    """
    ask = group(
        device,
        backend,
        group_memory_gb,
        per_device_memory_gb,
        max_devices,
        min_devices,
        prefer_max_devices,
        exclusive,
        even,
    )
    members, lease, told = _obtained(ask, timeout)
    return PlacementGroup(
        granted(members, lease),
        group_memory_bytes=told.get("group_bytes", ask.group_bytes),
        per_device_memory_bytes=told.get("per_device_bytes", ask.per_device_bytes),
        prefer_max_devices=ask.prefer_max,
    )


def cuda_group(
    *,
    group_memory_gb: Memory = 0,
    per_device_memory_gb: Amount = 0,
    max_devices: int,
    min_devices: int = 1,
    prefer_max_devices: bool = False,
    exclusive: bool = False,
    even: bool = True,
    timeout: float | None = None,
) -> PlacementGroup:
    """Reserve places on several CUDA GPUs; as ``reserve_group``."""
    return reserve_group(
        device=Device.GPU,
        backend=Backend.CUDA,
        group_memory_gb=group_memory_gb,
        per_device_memory_gb=per_device_memory_gb,
        max_devices=max_devices,
        min_devices=min_devices,
        prefer_max_devices=prefer_max_devices,
        exclusive=exclusive,
        even=even,
        timeout=timeout,
    )


def check() -> None:
    """Ask whether a lease was taken back: then a step is run again, or Revoked raised. Nothing outside a job."""
    here = service.found()
    if here is not None:
        waiting.check(here)


def _obtained(ask: Ask, timeout: float | None) -> tuple[list[dict[str, Any]], Lease | None, dict[str, Any]]:
    here = service.found()
    if here is None:
        return outside.members(ask), None, {}
    lease, told = waiting.obtain(ask, here, timeout)
    return told["members"], lease, told
