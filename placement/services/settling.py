"""What a running job is charged from now on: lowered to what it has shown, and never a promise."""

from __future__ import annotations

from typing import Any

from calibration.domain.charge import Settled, held, settle
from calibration.domain.knobs import Knobs
from calibration.domain.ladder import Basis
from calibration.domain.samples import RAM
from calibration.domain.windows import Window, both_in_one
from placement import estimates, inside, snapshots
from placement.domain.containing import containers
from placement.domain.submitting.taken import Kind
from placement.models import Job


def pool_of_both(job: Job) -> str:
    """Return the pool that a job's device memory is charged to, "" for a job without a device."""
    return snapshots.charged_pool(job)


def settled(job: Job, window: Window, at: float, knobs: Knobs, version: int) -> dict[str, Any]:
    """Return a running job's charges as they stand with what its window has shown until ``at``, a monotonic second."""
    charges: dict[str, Any] = {}
    vram = window.levels.get("vram")
    blind = any(charge.get("unread") for charge in job.charges.values())
    seen = (vram is not None and vram.peak > 0) if job.device and not blind else None
    together = pool_of_both(job) == RAM
    if together:
        window = both_in_one(window)
    for pool, charge in job.charges.items():
        if (
            charge.get("promise") or charge.get("unread") or charge.get(inside.UNHELD)
        ):  # it stays as it was granted, whatever is used
            cap = None if job.kind == Kind.HOLD else charge.get("cap")
            charges[pool] = {**charge, "cap": cap, "held": held(inside.granted(charge), job.used.get(pool))}
            continue
        kind = "ram" if pool == RAM else "vram"
        before = (
            Settled(charge["granted"], True, charge.get("proof"), charge.get("note", ""))
            if charge.get("settled")
            else None
        )
        now = settle(
            charge["granted"],
            Basis[charge["basis"].upper()],
            window,
            knobs,
            kind=kind,
            at=at,
            measured_need=charge["at_start"],
            seconds_to_peak=_to_peak(job, version, kind, together),
            shape_varies=bool(job.workload and job.workload.shape_varies) or _tells_little(job),
            seen_on_device=seen,
            fixed_cap=charge.get("cap") if kind == "vram" else None,
            before=before,
        )
        charges[pool] = {
            **charge,
            "granted": now.granted,
            "held": held(now.granted + charge.get("inside", 0), job.used.get(pool)),
            "settled": now.settled,
            "proof": now.proof,
            "note": now.note,
        }
    return charges


def _to_peak(job: Job, version: int, kind: str, together: bool) -> float | None:
    if not together:
        return estimates.seconds_to_peak(job, version, kind)
    found = [estimates.seconds_to_peak(job, version, each) for each in ("ram", "vram")]
    known = [seconds for seconds in found if seconds is not None]
    return max(known) if len(known) == len(found) else None


def _tells_little(job: Job) -> bool:
    """Return whether a job starts containers itself: what is seen of it looks settled while they fill the machine."""
    return not job.image and bool(containers.unkept(job.command, job.argv))
