"""What a job is told of its device and its cap there, and the record of it that says later what can be in force."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

from calibration import contexts
from calibration.models import PoolNow
from placement import snapshots
from placement.domain.containing import containers
from placement.domain.containing.cap_environment import (
    SHIM_OFF,
    DeviceCap,
    cap_variables,
    mps_variables,
    shim_variables,
)
from placement.domain.containing.visible import Seen, device_variables
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


@dataclass(frozen=True, slots=True)
class _One:
    """One device of a job: its row, what its pool showed last, and what the job is charged there."""

    device: Device
    row: PoolNow | None
    charge: Mapping[str, Any]
    reserves: bool

    @property
    def cap(self) -> int | None:
        # Whoever asks for more may get it on the same device, and a cap that a framework was told cannot be raised.
        return None if self.reserves else self.charge.get("cap")

    @property
    def model(self) -> str:
        return self.device.model or (self.row.model if self.row else "")

    @property
    def total(self) -> int | None:
        return self.row.total if self.row else None

    @property
    def index(self) -> int:
        return _number(self.device, self.row.index if self.row else None)


def of(job: Job, user_env: Mapping[str, str], python_path: str, *, other_account: bool = False) -> Surroundings:
    """Return what a job finds of its devices; ``python_path`` is the PYTHONPATH that it would have without us.

    A container sees its own devices alone, under other indices than the machine's, so there they go by UUID.
    """
    contained = bool(job.image)
    rows = Device.objects.filter(uuid__in=job.devices).in_bulk(field_name="uuid") if job.devices else {}
    now = {row.pool: row for row in PoolNow.objects.filter(node=job.node, pool__in=list(rows))} if rows else {}
    charges = {job.device: job.charges.get(snapshots.charged_pool(job), {})}  # the first may be charged as main memory
    charges = {u: job.charges.get(u) or charges.get(u, {}) for u in job.devices}
    ones = [_One(rows[u], now.get(u), charges[u], job.reserves) for u in job.devices if u in rows]
    if not ones:
        return Surroundings(_all_visible(job, []) if job.reserves else device_variables((), there=_there(job.node)))
    first = ones[0]
    variables = (
        _all_visible(job, [one.device for one in ones])
        if job.reserves
        else device_variables([_seen(o.device, o.index) for o in ones], by_uuid=contained, there=_there(job.node))
    )
    _, instrument = snapshots.knobs_now()
    context = contexts.of(first.model, job.user.get_username(), instrument.bytes_of("context_allowance_mib"))
    caps = tuple(_cap(one) for one in ones if one.cap is not None)
    told = cap_variables(caps, user_env, context.bytes)
    variables |= told.variables
    folder = for_everybody() if other_account else SHIM
    shim = shim_variables(str(folder), python_path, user_env) if caps and folder else {}
    simulated = first.device.simulated
    mps = mps_variables(caps, pipe()) if _mps(first.device, contained) else {}
    variables |= {**shim, **mps}
    if simulated:
        variables["TIDEGATE_SIMULATED"] = str(settings.SIMULATED_DIR)
    both = {
        "context": context.bytes,
        "context_runs": context.runs,
        "shim_off": user_env.get(SHIM_OFF) == "0",
        "kept": list(told.kept),
    }
    others = {one.device.uuid: _told(one, bool(mps)) for one in ones[1:]}
    return Surroundings(variables, {**_told(first, bool(mps)), **both, **({"others": others} if others else {})})


def _cap(one: _One) -> DeviceCap:
    cap = one.cap or 0
    whole = cap if capping.seen_as_whole(one.device.uuid) else one.total
    return DeviceCap(one.device.uuid, cap, whole, one.charge.get("free_before"))


def _told(one: _One, mps: bool) -> dict[str, Any]:
    """Return what is written down of one device: without any value that a person set."""
    return {
        "device": one.device.uuid,
        "cap": one.cap,
        "model": "" if one.device.simulated else one.model,
        "total": one.total,
        "mps": one.cap if mps else None,
        "simulated": one.device.simulated,
    }


def _mps(device: Device, contained: bool) -> bool:
    return settings.MPS_LIMITS and not device.simulated and not contained and mps_server() is not None


def _number(device: Device, now: int | None) -> int:
    """Return the number by which its driver knows a device: as it was read last, or as an admin says."""
    if device.by_hand:
        return device.index if device.driver_number is None else device.driver_number
    return device.index if now is None else now


def _seen(device: Device, number: int) -> Seen:
    return Seen(device.uuid, number, tuple(device.backends), device.kind)


def _there(node: str) -> frozenset[str]:
    """Return the backends of all devices declared on a node, and "TPU" where one of them is that."""
    rows = Device.objects.filter(node__name=node, retired=False).only("backend", "more_backends", "kind")
    words = {word for row in rows for word in row.backends}
    return frozenset(words | ({"TPU"} if any(row.kind == "TPU" for row in rows) else set()))


def _all_visible(job: Job, own: Sequence[Device]) -> dict[str, str]:
    """Return the variables of a job that may be granted any device of its node while it runs, its own first."""
    rows = list(Device.objects.filter(node__name=job.node, retired=False).order_by("by_hand", "index", "uuid"))
    cut = {d.parent for d in rows if d.parent}  # into instances, which are the devices then
    found = [d for d in rows if d.uuid not in cut and (not job.image or containers.given(d.backend, d.measurable))]
    now = dict(PoolNow.objects.filter(node=job.node).values_list("pool", "index"))
    first = {device.uuid: place for place, device in enumerate(own)}
    found.sort(key=lambda one: first.get(one.uuid, len(first)))
    seen = [_seen(d, _number(d, now.get(d.uuid))) for d in found]
    variables = device_variables(seen, by_uuid=bool(job.image), there=_there(job.node))
    if any(d.simulated for d in found):
        variables["TIDEGATE_SIMULATED"] = str(settings.SIMULATED_DIR)
    return variables


def in_container(job: Job, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the devices that a job's container is given: its own, or all of its node that it may still ask for."""
    told = variables.get("TIDEGATE_DEVICE_UUIDS", "").split(",") if job.reserves else job.devices
    return tuple(device for device in told if device.startswith(("GPU-", "MIG-")))


def client(*, other_account: bool = False) -> str:
    """Return the folder with the package ``tidegate`` that a job can read, "" where there is none."""
    if not other_account:
        return str(CLIENT)
    copied = for_everybody(CLIENT / "tidegate", "client/tidegate")
    return str(copied.parent) if copied else ""


def client_path(python_path: str, *, other_account: bool = False) -> str:
    """Return PYTHONPATH with the package ``tidegate`` on it, for programs that ask for more while they run."""
    return os.pathsep.join(part for part in (python_path, client(other_account=other_account)) if part)


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
