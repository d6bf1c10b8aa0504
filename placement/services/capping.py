"""Which cap on device memory is in force for a job: limits that we set, and what its processes' receipts say."""

from __future__ import annotations

import contextlib
import copy
import os
import threading
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from calibration import contexts
from calibration.domain.contexts import context_seen
from calibration.domain.samples import Identity, Reading
from calibration.probes import limits
from placement.domain.containing import containers
from placement.domain.containing.device_caps import CapKind, Given, cap_in_force
from placement.domain.declaring import by_hand
from placement.domain.submitting.taken import Kind
from placement.models import Device, Job
from placement.runner import engine
from placement.runner.jsonfile import write_record
from placement.runner.spec import container_of_run
from placement.services import receipts
from placement.services.receipts import count

TOLD = "vram-told.json"  # in control/: what the job was told at its start
LIMIT = "vram-limit.json"  # in control/: {"device", "cgroup", "limit" (bytes or null), "used" (the most seen), "why"}
CGROUPS = "/sys/fs/cgroup"
PROC = "/proc"
LONGEST_TOLD = 64 << 10  # bytes: of a group it says something of each device
_NOTHING_TO_LIMIT = "it has no device, no cap or no control group"
_STEP = 64 << 20  # bytes by which the most seen has to rise to be written down again
_unable: dict[str, str] = {}  # device to why its driver keeps no limits: asked once by each process that starts jobs
_limited: set[str] = set()  # devices on which the last limit was set


def run_dir_of(job: Job) -> Path:
    """Return the directory of a job's attempt on this node."""
    return settings.RUNS / f"{job.pk}-{job.attempt}"


def note(run_dir: Path, told: Mapping[str, Any]) -> None:
    """Write down what a job was told of its device. OSError as it comes."""
    if told:
        write_record(str(run_dir / "control" / TOLD), dict(told), durable=False)


def limit(job: Job, cgroup: str) -> str:
    """Have the driver keep a job's control group within its caps; return "" where it does, else why it does not.

    ``cgroup`` is the absolute path of the leaf that the job's processes are in. Each device is asked by itself.
    """
    answers = [_limit(job, device, cgroup) for device in job.devices] or [_NOTHING_TO_LIMIT]
    return next((why for why in answers if why), "")


def _limit(job: Job, device: str, cgroup: str) -> str:
    cap = job.charges.get(device, {}).get("cap")
    if cap is None or not cgroup:
        return _NOTHING_TO_LIMIT
    if device in _unable or not device.startswith("GPU-"):
        return _unable.get(device, "only whole NVIDIA devices can be limited per group")
    if cgroup.startswith(f"{CGROUPS}/unified/"):
        return "the driver limits groups of cgroup v2 alone, and main memory is governed by v1 here"
    answer = limits.set_limit(device, cgroup, cap)
    if not answer.able:
        _unable[device] = answer.error
    (_limited.discard if answer.error else _limited.add)(device)
    record = {"device": device, "cgroup": cgroup, "limit": None if answer.error else cap, "used": 0}
    _write(job, device, {**record, "why": answer.error})
    return answer.error


def group_of_container(ident: str, pids: Iterable[int]) -> str:
    """Return the path of the control group that an engine made, by processes that are in it; "" where none tells."""
    root = f"{CGROUPS}/unified" if os.path.isdir(f"{CGROUPS}/unified") else CGROUPS
    for pid in pids:
        try:
            lines = Path(f"{PROC}/{pid}/cgroup").read_text("utf-8", "replace").splitlines()
        except OSError:
            continue
        path = next((line[3:] for line in lines if line.startswith("0::/")), "")
        if ident and containers.id_of(path) == ident and "/../" not in f"{path}/":
            return root + path
    return ""


def unlimit(job: Job) -> str:
    """Take a job's limits away, before its group goes; "" where there were none or they are gone."""
    found = []
    for device in job.devices:
        kept = receipts.plain(_limit_of(job, device))
        if kept.get("limit"):
            found.append(limits.clear(str(kept.get("device")), str(kept.get("cgroup"))).error)
    return next((why for why in found if why), "")


def _limit_of(job: Job, device: str) -> Path:
    """Return where the limit of one device is written down; of the first under the name that it always had."""
    name = LIMIT if device == job.device else f"vram-limit-{job.devices.index(device)}.json"
    return run_dir_of(job) / "control" / name


def seen_as_whole(device: str) -> bool:
    """Return whether a job takes its cap for the size of the device: under a driver's limit CUDA tells it so."""
    return device in _limited


def by_kernel(device: str) -> str:
    """Return what keeps jobs within their memory on a device whatever they run, in words."""
    if device.startswith("MIG-"):
        return "its jobs are kept in the MIG instance"
    if device.startswith(by_hand.PREFIX):
        return "nothing measures it, so nobody watches or caps its jobs there"
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
        self._boxed: dict[int, int] = {}  # attempt by job whose container's group the driver was asked to limit

    def _limit_container(self, job: Job, pids: Iterable[int]) -> None:
        """Have the driver limit a container's group, once its processes tell which that is; beside the loop."""
        able = any(device.startswith("GPU-") and device not in _unable for device in job.devices)
        found = container_of_run(run_dir_of(job)) if able and self._boxed.get(job.pk) != job.attempt else None
        group = group_of_container(engine.ident(found[0]), pids) if found else ""
        if group:
            self._boxed[job.pk] = job.attempt
            threading.Thread(target=limit, args=(copy.copy(job), group), daemon=True, name="driver limit").start()

    def refresh(self, job: Job, reading: Reading, members: Iterable[Identity]) -> bool:
        """Put what is in force into the charges of the job's devices; return whether one changed."""
        devices = [device for device in job.devices if device in job.charges]
        if not devices or job.kind == Kind.HOLD:
            return False
        ours = {identity.pid for identity in members}
        if job.image:
            self._limit_container(job, ours)
        there: dict[str, tuple[int, ...]] = {}
        for device in devices:
            if job.charges[device].get("unread"):
                there[device] = ()
                continue
            _most_used(job, device, job.used.get(device))
            pool = reading.pools.get(device)
            pids = tuple(sorted(pid for pid, _ in pool.processes if pid in ours)) if pool else ()
            if job.image:  # receipts are named by the numbers that its processes have inside
                pids = tuple(sorted(receipts.own_number(pid) for pid in pids))
            there[device] = pids
        run_dir, uses = run_dir_of(job), tuple(bool(job.used.get(device)) for device in devices)
        now = (_changed(run_dir / "receipts"), _changed(run_dir / "control"), *there.values(), uses)
        if self._seen.get(job.pk) == now:
            return False
        self._seen[job.pk] = now
        stands = {device: stand(job, there[device] or None, device=device) for device in devices}
        changed = [device for device in devices if _put(job, device, stands[device])]
        return bool(changed)

    def forget(self, alive: Iterable[int]) -> None:
        """Forget the jobs that are not among these."""
        kept = set(alive)
        self._seen = {pk: seen for pk, seen in self._seen.items() if pk in kept}
        self._boxed = {pk: attempt for pk, attempt in self._boxed.items() if pk in kept}


def stand(
    job: Job, on_device: tuple[int, ...] | None = None, *, device: str = "", ended: bool = False
) -> dict[str, Any]:
    """Return what is in force for a job on one of its devices (left out: the first), as it is stored."""
    device = device or job.device
    run_dir = run_dir_of(job)
    told, kept = _told_of(run_dir, device), receipts.plain(_limit_of(job, device))
    found = receipts.read(run_dir, device)
    return cap_in_force(
        Given(
            cap=job.charges.get(device, {}).get("cap"),
            driver_limit=count(kept.get("limit")),
            driver_why_not=str(kept.get("why") or "")[:200],
            instance=count(told.get("total")) if device.startswith("MIG-") else None,
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
            unread=job.charges.get(device, {}).get("unread") is True,
        )
    ).as_data()


def at_the_end(job: Job) -> dict[str, Any]:
    """Return a job's charges with what was in force at last: a short run may have told only now."""
    charges = dict(job.charges)
    for device in job.devices:
        charge = charges.get(device)
        if charge is None:
            continue
        before = charge.get("force") or {}
        on_device = tuple(before.get("evidence", {}).get("on_device") or ()) or None
        charges[device] = {**charge, "force": stand(job, on_device, device=device, ended=True)}
    return charges


def learn(job: Job, peak: int | None, at: datetime) -> None:
    """Keep what the context of a run's one process cost, where its framework told what it held itself."""
    told = receipts.plain(run_dir_of(job) / "control" / TOLD)
    found = receipts.read(run_dir_of(job), job.device)
    force = job.charges.get(job.device, {}).get("force") or {}
    model = str(told.get("model") or "")
    if (
        not model
        or len(job.devices) != 1
        or len(found.applied) != 1
        or force.get("kind") in (CapKind.WATCHED, CapKind.UNREAD)
    ):
        return
    size = context_seen(peak, found.reserved.get(found.applied[0].pid))
    if size is not None and Device.objects.filter(uuid=job.device, simulated=False).exists():
        contexts.keep(model, job.user.get_username(), f"job:{job.pk}", size, at)


def _told_of(run_dir: Path, device: str) -> dict[str, Any]:
    """Return what the job was told of one device, and what holds for all of them."""
    told = receipts.plain(run_dir / "control" / TOLD, LONGEST_TOLD)
    others = told.get("others")
    own = others.get(device) if isinstance(others, dict) else None
    return {**told, **own} if isinstance(own, dict) else told


def _most_used(job: Job, device: str, used: int | None) -> None:
    path = _limit_of(job, device)
    if not used or not path.exists():
        return
    kept = receipts.plain(path)
    if count(kept.get("limit")) and used >= (count(kept.get("used")) or 0) + _STEP:
        _write(job, device, {**kept, "used": used})


def _write(job: Job, device: str, record: Mapping[str, Any]) -> None:
    with contextlib.suppress(OSError):  # without a record the job is shown as watched; the limit itself holds
        write_record(str(_limit_of(job, device)), record, durable=False)


def _names(found: object) -> tuple[str, ...]:
    return tuple(str(name)[:100] for name in found[:20]) if isinstance(found, list) else ()


def _changed(folder: Path) -> int | None:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return None


def _put(job: Job, device: str, force: dict[str, Any]) -> bool:
    charge = job.charges[device]
    if charge.get("force") == force:
        return False
    job.charges = {**job.charges, device: {**charge, "force": force}}
    return True
