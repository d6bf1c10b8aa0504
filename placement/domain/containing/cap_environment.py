"""What a command is told of its caps on device memory, in the words of frameworks and engines, and of the shim."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from placement.domain.containing.environment import framework_variables

MIB = 1 << 20
SHIM_OFF = "TIDEGATE_SHIM"
PROCESSES = "TIDEGATE_GPU_PROCESSES"
FIT_TARGET = "LLAMA_ARG_FIT_TARGET"
LLAMA_LEAVES = 1024  # MiB that llama.cpp leaves free by itself: with less to leave it is told nothing


@dataclass(frozen=True, slots=True)
class DeviceCap:
    """The cap on one device that the command sees, in bytes; ``total`` and ``free`` None where nobody knows."""

    uuid: str
    cap: int
    total: int | None = None
    free: int | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """The variables, and which of the submission's own were left as they are."""

    variables: Mapping[str, str]
    kept: tuple[str, ...] = ()


def sharers(user_env: Mapping[str, str]) -> int | None:
    """Return how many processes share a device, as the submission says; None where it does not."""
    said = user_env.get(PROCESSES, "")
    return int(said) if said.isascii() and said.isdigit() and 0 < int(said) <= 4096 else None


def cap_variables(caps: tuple[DeviceCap, ...], user_env: Mapping[str, str], context: int) -> Told:
    """Return what tells frameworks the caps. What takes one figure for all devices is given the smallest.

    A process's part is (cap / processes) less a ``context``, in bytes; where nobody said how many processes there are,
    each may take all of it and their sum is watched.
    """
    if not caps:
        found = framework_variables(None, None, user_env, context)
        return Told(found.variables, tuple(sorted(found.kept)))
    least = min(caps, key=lambda one: one.cap)
    part = least.cap // (sharers(user_env) or 1)
    totals = [one.total for one in caps if one.total]
    found = framework_variables(part, max(totals, default=None), user_env, context)
    variables = dict(found.variables)
    variables["TIDEGATE_VRAM_CAP_BYTES"] = str(least.cap)
    variables["TIDEGATE_VRAM_CAP_MIB"] = str(least.cap // MIB)
    variables["TIDEGATE_VRAM_CAPS"] = ",".join(f"{one.uuid}={one.cap}" for one in caps)
    variables["TIDEGATE_VRAM_CONTEXT_BYTES"] = str(context)
    shares = [one.cap / one.total for one in caps if one.total]
    if len(shares) == len(caps):
        variables["TIDEGATE_GPU_FRACTION"] = f"{max(1, int(min(1.0, *shares, 1.0) * 1000)) / 1000:.3f}"
    kept = set(found.kept)
    margins = [max(0, one.free - one.cap) // MIB for one in caps if one.free is not None]
    if FIT_TARGET in user_env:
        kept.add(FIT_TARGET)
    elif margins and max(margins) > LLAMA_LEAVES:
        variables[FIT_TARGET] = str(max(margins))
    return Told(variables, tuple(sorted(kept)))


def shim_variables(shim: str, python_path: str, user_env: Mapping[str, str]) -> dict[str, str]:
    """Return what has Python import the shim first; {} where the submission turned it off."""
    if user_env.get(SHIM_OFF) == "0":
        return {}
    return {"PYTHONPATH": os.pathsep.join(part for part in (shim, python_path) if part)}


def mps_variables(caps: tuple[DeviceCap, ...], pipe: str) -> dict[str, str]:
    """Return the limits of an MPS client. They name seen devices alone: one unseen name and MPS drops them all."""
    rows = [f"{one.uuid}={max(1, one.cap // MIB)}M" for one in caps if one.uuid.startswith("GPU-")]
    if not rows or len(rows) < len(caps):
        return {}
    return {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": ",".join(rows), "CUDA_MPS_PIPE_DIRECTORY": pipe}
