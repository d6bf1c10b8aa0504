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
from placement.domain.environment import device_variables, visible_variables
from placement.models import Device, Job
from placement.services import capping

SHIM = Path(__file__).resolve().parents[1] / "shim"
CLIENT = Path(__file__).resolve().parents[1] / "client"
PIPE = "/tmp/nvidia-mps"
"""Where an MPS server listens unless CUDA_MPS_PIPE_DIRECTORY says otherwise."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The variables, and what was told: it goes into the run directory, without any value that a person set."""

    variables: Mapping[str, str]
    told: Mapping[str, Any] = field(default_factory=dict)


def of(job: Job, user_env: Mapping[str, str], python_path: str, *, other_account: bool = False) -> Surroundings:
    """Return what a job finds of its device; ``python_path`` is the PYTHONPATH that it would have without us."""
    device = Device.objects.filter(uuid=job.device).first() if job.device else None
    if device is None:
        return Surroundings(_all_visible(job, None) if job.reserves else device_variables(None))
    row = PoolNow.objects.filter(node=job.node, pool=device.uuid).first()
    index = row.index if row and row.index is not None else device.index
    own = [(device.uuid, index)]
    variables = _all_visible(job, device) if job.reserves else visible_variables(own, device.backend)
    _, instrument = snapshots.knobs_now()
    charge = job.charges.get(device.uuid, {})
    cap, total = charge.get("cap"), row.total if row else None
    model = device.model or (row.model if row else "")
    context = contexts.of(model, job.user.get_username(), instrument.bytes_of("context_allowance_mib"))
    whole = cap if capping.seen_as_whole(device.uuid) else total
    # Whoever asks for more may get it on the same device, and a cap that a framework was told cannot be raised.
    caps = () if cap is None or job.reserves else (DeviceCap(device.uuid, cap, whole, charge.get("free_before")),)
    told = cap_variables(caps, user_env, context.bytes)
    variables |= told.variables
    folder = for_everybody() if other_account else SHIM
    shim = shim_variables(str(folder), python_path, user_env) if caps and folder else {}
    mps = mps_variables(caps, pipe()) if settings.MPS_LIMITS and not device.simulated and mps_server() else {}
    variables |= {**shim, **mps}
    if device.simulated:
        variables["TIDEGATE_SIMULATED"] = str(settings.SIMULATED_DIR)
    return Surroundings(
        variables,
        {
            "device": device.uuid,
            "cap": cap if caps else None,
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


def _all_visible(job: Job, own: Device | None) -> dict[str, str]:
    """Return the variables of a job that may be granted any device of its node while it runs, its own first."""
    rows = Device.objects.filter(node__name=job.node, retired=False).order_by("index", "uuid")
    backend = own.backend if own else next((d.backend for d in rows), "CUDA")
    found = [d for d in rows if d.backend == backend]
    now = dict(PoolNow.objects.filter(node=job.node).values_list("pool", "index"))
    seen = [(d.uuid, d.index if now.get(d.uuid) is None else now[d.uuid]) for d in found]
    variables = visible_variables(sorted(seen, key=lambda one: own is None or one[0] != own.uuid), backend)
    if own is None and any(d.simulated for d in found):
        variables["TIDEGATE_SIMULATED"] = str(settings.SIMULATED_DIR)
    return variables


def client_path(python_path: str, *, other_account: bool = False) -> str:
    """Return PYTHONPATH with the package ``tidegate`` on it, for programs that ask for more while they run."""
    if other_account and not for_everybody(CLIENT / "tidegate", "client/tidegate"):
        return python_path
    folder = settings.DATA / "client" if other_account else CLIENT
    return os.pathsep.join(part for part in (python_path, str(folder)) if part)


def for_everybody(source: Path = SHIM, name: str = "shim") -> Path | None:
    """Return a copy of the shim that every account can read, which our code need not be; None where none can be made.

    An account that could write there could have others' jobs run what it likes, so only the service can. ``source``
    and ``name``: of the client, the same.
    """
    place = settings.DATA / name
    try:
        for folder in (*reversed(place.relative_to(settings.DATA).parents), place.relative_to(settings.DATA)):
            (settings.DATA / folder).mkdir(mode=0o755, parents=True, exist_ok=True)
            if folder.name:
                os.chmod(settings.DATA / folder, 0o755)
        for file in sorted(source.glob("*.py")):
            wanted = file.read_bytes()
            kept = place / file.name
            if not kept.is_file() or kept.read_bytes() != wanted:
                fresh = place / f".{file.name}.{os.getpid()}"
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
