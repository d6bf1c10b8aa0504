"""What a job is told of its device and its cap there, and the record of it that says later what can be in force."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from calibration import contexts
from calibration.models import PoolNow
from placement import snapshots
from placement.domain.cap_environment import SHIM_OFF, DeviceCap, cap_variables, mps_variables, shim_variables
from placement.domain.environment import device_variables
from placement.models import Device, Job
from placement.services import capping

SHIM = Path(__file__).resolve().parents[1] / "shim"
PIPE = "/tmp/nvidia-mps"
"""Where an MPS server listens unless CUDA_MPS_PIPE_DIRECTORY says otherwise."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The variables, and what was told: it goes into the run directory, without any value that a person set."""

    variables: Mapping[str, str]
    told: Mapping[str, Any] = field(default_factory=dict)


def of(job: Job, user_env: Mapping[str, str], python_path: str, *, other_account: bool = False) -> Surroundings:
    """Return what a job finds of its device; ``python_path`` is the PYTHONPATH that it would have without us.

    A container sees its own device alone, under another index than the machine's, so there it goes by UUID.
    """
    contained = bool(job.image)
    device = Device.objects.filter(uuid=job.device).first() if job.device else None
    if device is None:
        return Surroundings(device_variables(None))
    row = PoolNow.objects.filter(node=job.node, pool=device.uuid).first()
    index = row.index if row and row.index is not None else device.index
    variables = device_variables(device.uuid, index=index, backend=device.backend, by_uuid=contained)
    _, instrument = snapshots.knobs_now()
    charge = job.charges.get(snapshots.charged_pool(job), {})
    cap, total = charge.get("cap"), row.total if row else None
    model = device.model or (row.model if row else "")
    context = contexts.of(model, job.user.get_username(), instrument.bytes_of("context_allowance_mib"))
    whole = cap if capping.seen_as_whole(device.uuid) else total
    caps = () if cap is None else (DeviceCap(device.uuid, cap, whole, charge.get("free_before")),)
    told = cap_variables(caps, user_env, context.bytes)
    variables |= told.variables
    folder = for_everybody() if other_account else SHIM
    shim = shim_variables(str(folder), python_path, user_env) if caps and folder else {}
    mps = mps_variables(caps, pipe()) if _mps(device, contained) else {}
    variables |= {**shim, **mps}
    if device.simulated:
        variables["TIDEGATE_SIMULATED"] = str(settings.SIMULATED_DIR)
    return Surroundings(
        variables,
        {
            "device": device.uuid,
            "cap": cap,
            "model": "" if device.simulated else model,
            "total": total,
            "context": context.bytes,
            "context_runs": context.runs,
            "shim_off": user_env.get(SHIM_OFF) == "0",
            "mps": cap if mps else None,
            "kept": list(told.kept),
            "simulated": device.simulated,
        },
    )


def _mps(device: Device, contained: bool) -> bool:
    return settings.MPS_LIMITS and not device.simulated and not contained and mps_server() is not None


def for_everybody() -> Path | None:
    """Return a copy of the shim that every account can read, which our code need not be; None where none can be made.

    An account that could write there could have others' jobs run what it likes, so only the service can.
    """
    place = settings.DATA / "shim"
    try:
        place.mkdir(mode=0o755, parents=True, exist_ok=True)
        os.chmod(place, 0o755)
        for source in sorted(SHIM.glob("*.py")):
            wanted = source.read_bytes()
            kept = place / source.name
            if not kept.is_file() or kept.read_bytes() != wanted:
                fresh = place / f".{source.name}.{os.getpid()}"
                fresh.write_bytes(wanted)
                fresh.chmod(0o644)
                fresh.replace(kept)
    except OSError:
        return None
    return place


def pipe() -> str:
    """Return where this node's MPS server would listen."""
    return os.environ.get("CUDA_MPS_PIPE_DIRECTORY") or PIPE


def mps_server() -> int | None:
    """Return the pid of the MPS control daemon that listens there, None without a live one.

    With a wrong directory or a dead server a client runs without MPS and without its limit, and says nothing.
    """
    folder = Path(pipe())
    try:
        pid = int((folder / "nvidia-cuda-mps-control.pid").read_text())
        return pid if pid > 1 and (folder / "control").exists() and Path(f"/proc/{pid}").is_dir() else None
    except (OSError, ValueError):
        return None
