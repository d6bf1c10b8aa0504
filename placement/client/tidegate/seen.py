"""Which devices this process sees, and at which position: what ``cuda:N`` counts.

TIDEGATE_DEVICE_UUIDS are the job's devices in the order of its mask, TIDEGATE_DEVICE_INDICES their numbers in bus
order. A launcher may have narrowed CUDA_VISIBLE_DEVICES (or HIP_VISIBLE_DEVICES) for this process since.
"""

from __future__ import annotations

import os
from typing import Mapping

from .errors import NotVisible

SWITCH = "Reserves inside its run"
MASKS = {
    "cuda": "CUDA_VISIBLE_DEVICES",
    "rocm": "HIP_VISIBLE_DEVICES",
    "xpu": "ZE_AFFINITY_MASK",
    "xla": "TPU_VISIBLE_CHIPS",
}


def seen(backend: str, environment: Mapping[str, str] | None = None) -> tuple[str, ...] | None:
    """Return the UUIDs of the job's devices that this process sees, by position; None where nobody can tell.

    "" stands at a position that is none of the job's devices.
    """
    env = os.environ if environment is None else environment
    if "TIDEGATE_DEVICE_UUIDS" not in env:
        return None
    of = f"TIDEGATE_{backend.upper()}"  # where not all of its devices offer that backend
    of = of if f"{of}_UUIDS" in env else "TIDEGATE_DEVICE"
    uuids = _listed(env[f"{of}_UUIDS"])
    mask = MASKS.get(backend, "")
    if backend == "xla" and mask not in env:
        mask = MASKS["cuda"]  # it is used on a GPU, too
    if not mask and not uuids and of != "TIDEGATE_DEVICE":
        return None  # none of the job's own offers it, and nothing hides others from the process
    numbers = _listed(env.get(f"{of}_INDICES", ""))
    if backend == "rocm":
        numbers = [str(n) for n in range(len(uuids))]  # the lower filter has renumbered them
    if len(numbers) != len(uuids):
        numbers = []
    if mask not in env:
        return tuple(uuids) if mask == "" or not numbers or backend == "rocm" else _unmasked(uuids, numbers)
    entries = _listed(env[mask])
    if numbers:
        return _by_number(entries, uuids, numbers)
    if any(entry.isdigit() for entry in entries):
        return tuple(uuids) if len(entries) == len(uuids) else None  # as it was set, or changed by we know not whom
    return _by_number(entries, uuids, [])


def local_index(uuid: str, backend: str, environment: Mapping[str, str] | None = None) -> int | None:
    """Return the position of a device among those that this process sees; None where it is not, or nobody can tell."""
    positions = seen(backend, environment)
    return None if positions is None or uuid not in positions else positions.index(uuid)


def require_any(ask: object, backend: str, environment: Mapping[str, str] | None = None) -> tuple[str, ...] | None:
    """Return the UUIDs that may be granted to this process, None where nobody can tell.

    Raises NotVisible where it sees no device at all, since no waiting would change that.
    """
    positions = seen(backend, environment)
    if positions is None:
        return None
    found = tuple(uuid for uuid in positions if uuid)
    if not found:
        raise NotVisible(f"{ask} cannot be used: {blind(backend, environment)}")
    return found


def blind(backend: str, environment: Mapping[str, str] | None = None) -> str:
    """Say what hides devices from this process, and what to turn on."""
    env = os.environ if environment is None else environment
    mask = MASKS.get(backend, "")
    name = mask if mask in env else "TIDEGATE_DEVICE_UUIDS"
    return (
        f"this process sees {name}={env.get(name, '')!r}. Turn on “{SWITCH}” of the workload, so that its jobs are "
        "started with every device visible that they may be granted; if something in the job set the mask, leave it."
    )


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _unmasked(uuids: list[str], numbers: list[str]) -> tuple[str, ...]:
    """Return the positions without a mask: each device at its number in bus order."""
    by_number = {int(number): uuid for number, uuid in zip(numbers, uuids) if number.isdigit()}
    return tuple(by_number.get(n, "") for n in range(max(by_number, default=-1) + 1))


def _by_number(entries: list[str], uuids: list[str], numbers: list[str]) -> tuple[str, ...]:
    """Return what a mask lets through; like the driver, it ends at the first entry that it does not know."""
    positions = []
    for entry in entries:
        if entry.isdigit() and numbers:
            positions.append(uuids[numbers.index(entry)] if entry in numbers else "")
            continue
        named = [uuid for uuid in uuids if uuid.startswith(entry)]
        if entry.startswith("-") or entry.isdigit():
            break
        positions.append(named[0] if len(named) == 1 else "")
    return tuple(positions)
