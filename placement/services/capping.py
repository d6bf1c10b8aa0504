"""Which cap on device memory is in force for a job: limits that we set, and what its processes' receipts say."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from calibration import contexts
from calibration.domain.contexts import context_seen
from calibration.domain.samples import Identity, Reading
from calibration.probes import limits
from placement.domain.device_caps import CapKind, Given, cap_in_force
from placement.domain.taken import Kind
from placement.models import Device, Job
from placement.runner.jsonfile import write_record
from placement.services import receipts
from placement.services.receipts import count

TOLD = "vram-told.json"  # in control/: what the job was told at its start
LIMIT = "vram-limit.json"  # in control/: {"device", "cgroup", "limit" (bytes or null), "used" (the most seen), "why"}
CGROUPS = "/sys/fs/cgroup"
_STEP = 64 << 20  # bytes by which the most seen has to rise to be written down again
_unable: dict[str, str] = {}  # device to why its driver keeps no limits, until this process ends
_limited: set[str] = set()  # devices on which the last limit was set


def run_dir_of(job: Job) -> Path:
    """Return the directory of a job's attempt on this node."""
    return settings.RUNS / f"{job.pk}-{job.attempt}"


def note(run_dir: Path, told: Mapping[str, Any]) -> None:
    """Write down what a job was told of its device. OSError as it comes."""
    if told:
        write_record(str(run_dir / "control" / TOLD), dict(told), durable=False)


def limit(job: Job, cgroup: str) -> str:
    """Have the driver keep a job's control group within its cap; return "" where it does, else why it does not.

    ``cgroup`` is the absolute path of the leaf that the job's processes are in.
    """
    cap = job.charges.get(job.device, {}).get("cap") if job.device else None
    if cap is None or not cgroup:
        return "it has no device, no cap or no control group"
    if job.device in _unable or not job.device.startswith("GPU-"):
        return _unable.get(job.device, "only whole NVIDIA devices can be limited per group")
    answer = limits.set_limit(job.device, cgroup, cap)
    if not answer.able:
        _unable[job.device] = answer.error
    (_limited.discard if answer.error else _limited.add)(job.device)
    record = {"device": job.device, "cgroup": cgroup, "limit": None if answer.error else cap, "used": 0}
    _write(job, {**record, "why": answer.error})
    return answer.error


def unlimit(job: Job) -> str:
    """Take a job's limit away, before its group goes; "" where there was none or it is gone."""
    kept = receipts.plain(run_dir_of(job) / "control" / LIMIT) if job.device else {}
    if not kept.get("limit"):
        return ""
    return limits.clear(str(kept.get("device")), str(kept.get("cgroup"))).error


def seen_as_whole(device: str) -> bool:
    """Return whether a job takes its cap for the size of the device: under a driver's limit CUDA tells it so."""
    return device in _limited


def by_kernel(device: str) -> str:
    """Return what keeps jobs within their memory on a device whatever they run, in words."""
    if device.startswith("MIG-"):
        return "its jobs are kept in the MIG instance"
    if not device.startswith("GPU-"):
        return "nothing but frameworks keeps a job within its cap"
    answer = limits.read(device, CGROUPS)
    if answer.able:
        return "the driver keeps jobs within their caps, where they have a control group and this runs as root"
    return f"the driver keeps no job within its cap ({answer.error})"


class Caps:
    """What stands for each running job, looked at anew when something in its directories changed."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[object, ...]] = {}

    def refresh(self, job: Job, reading: Reading, members: Iterable[Identity]) -> bool:
        """Put what is in force into the charge of the job's device; return whether it changed."""
        if not job.device or job.device not in job.charges or job.kind == Kind.HOLD:
            return False
        used = job.used.get(job.device)
        _most_used(job, used)
        pool = reading.pools.get(job.device)
        ours = {identity.pid for identity in members}
        there = tuple(sorted(pid for pid, _ in pool.processes if pid in ours)) if pool else ()
        run_dir = run_dir_of(job)
        now = (_changed(run_dir / "receipts"), _changed(run_dir / "control"), there, bool(used))
        if self._seen.get(job.pk) == now:
            return False
        self._seen[job.pk] = now
        return _put(job, stand(job, there or None))

    def forget(self, alive: Iterable[int]) -> None:
        """Forget the jobs that are not among these."""
        kept = set(alive)
        self._seen = {pk: seen for pk, seen in self._seen.items() if pk in kept}


def stand(job: Job, on_device: tuple[int, ...] | None = None, *, ended: bool = False) -> dict[str, Any]:
    """Return what is in force for a job on its device, as it is stored."""
    run_dir = run_dir_of(job)
    told, kept = (receipts.plain(run_dir / "control" / name) for name in (TOLD, LIMIT))
    found = receipts.read(run_dir, job.device)
    return cap_in_force(
        Given(
            cap=job.charges.get(job.device, {}).get("cap"),
            driver_limit=count(kept.get("limit")),
            driver_why_not=str(kept.get("why") or "")[:200],
            instance=count(told.get("total")) if job.device.startswith("MIG-") else None,
            mps=count(told.get("mps")),
            armed=found.armed,
            applied=found.applied,
            on_device=on_device,
            context=count(told.get("context")) or 0,
            context_runs=count(told.get("context_runs")) or 0,
            shim_off=told.get("shim_off") is True,
            kept=_names(told.get("kept")),
            simulated=told.get("simulated") is True and told.get("cap") is not None,
            ended=ended,
        )
    ).as_data()


def at_the_end(job: Job) -> dict[str, Any]:
    """Return a job's charges with what was in force at last: a short run may have told only now."""
    charge = job.charges.get(job.device) if job.device else None
    if charge is None:
        return dict(job.charges)
    before = charge.get("force") or {}
    on_device = before.get("evidence", {}).get("on_device")
    return {**job.charges, job.device: {**charge, "force": stand(job, tuple(on_device or ()) or None, ended=True)}}


def learn(job: Job, peak: int | None, at: datetime) -> None:
    """Keep what the context of a run's one process cost, where its framework told what it held itself."""
    told = receipts.plain(run_dir_of(job) / "control" / TOLD)
    found = receipts.read(run_dir_of(job), job.device)
    force = job.charges.get(job.device, {}).get("force") or {}
    model = str(told.get("model") or "")
    if not model or len(found.applied) != 1 or force.get("kind") == CapKind.WATCHED:
        return
    size = context_seen(peak, found.reserved.get(found.applied[0].pid))
    if size is not None and Device.objects.filter(uuid=job.device, simulated=False).exists():
        contexts.keep(model, job.user.get_username(), f"job:{job.pk}", size, at)


def _most_used(job: Job, used: int | None) -> None:
    path = run_dir_of(job) / "control" / LIMIT
    if not used or not path.exists():
        return
    kept = receipts.plain(path)
    if count(kept.get("limit")) and used >= (count(kept.get("used")) or 0) + _STEP:
        _write(job, {**kept, "used": used})


def _write(job: Job, record: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # without a record the job is shown as watched; the limit itself holds
        write_record(str(run_dir_of(job) / "control" / LIMIT), record, durable=False)


def _names(found: object) -> tuple[str, ...]:
    return tuple(str(name)[:100] for name in found[:20]) if isinstance(found, list) else ()


def _changed(folder: Path) -> int | None:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return None


def _put(job: Job, force: dict[str, Any]) -> bool:
    charge = job.charges[job.device]
    if charge.get("force") == force:
        return False
    job.charges = {**job.charges, job.device: {**charge, "force": force}}
    return True
