"""Windows of running jobs: opened at the start, raised by each reading, settled, and closed into sediment."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from calibration import rows
from calibration import services as instrument
from calibration.domain.attribution import unexplained_growth
from calibration.domain.charge import Settled, held, settle
from calibration.domain.deaths import Death
from calibration.domain.knobs import Knobs
from calibration.domain.ladder import Basis
from calibration.domain.preallocation import looks_preallocated, took_what_it_was_given
from calibration.domain.samples import RAM, Attribution, Reading
from calibration.domain.windows import Window, close, flat_band, observe
from calibration.models import OpenWindow, Sediment
from placement import estimates, inside
from placement.domain.taken import Kind
from placement.models import Job

SAVE_EVERY = 5.0  # seconds between saves of a window whose peaks do not move


@dataclass(slots=True)
class Open:
    """An open window in memory, and when it was last saved."""

    window: Window
    saved_at: float = float("-inf")
    saved_peaks: Mapping[str, int] = field(default_factory=dict)
    told: Mapping[str, int] = field(default_factory=dict)  # settled peaks that estimates may stand on by now
    read_at: Mapping[str, float | None] = field(default_factory=dict)  # per pool: of the last sample
    unexplained: int | None = None  # the most on its device that no process list explained while it ran
    unexplained_now: int | None = None


class Windows:
    """The open windows of one node's jobs, kept in memory and saved often enough to survive a kill."""

    def __init__(self) -> None:
        self._open: dict[int, Open] = {}

    def of(self, job: Job, at: float) -> Open:
        """Return the window of a job, read back from the database after a restart; ``at`` is a monotonic second."""
        return self._of(job, at, begin=True)

    def _of(self, job: Job, at: float, *, begin: bool) -> Open:
        if job.pk not in self._open:
            kept = OpenWindow.objects.filter(owner=owner(job)).first()
            body = kept.body if kept else {}
            if kept is None and begin:
                key = estimates.key_of(job)
                fields = {
                    name: getattr(key, name) for name in ("workload", "fingerprint", "params", "script", "workers")
                }
                instrument.open_window(owner(job), fields)
            ago = max(0.0, time.time() - job.started_at.timestamp()) if job.started_at else 0.0
            window = Window.from_data(body) if body else Window(started_at=at - ago)
            self._open[job.pk] = Open(window, told=kept.settled if kept else {})
        return self._open[job.pk]

    def drop(self, job_id: int) -> None:
        """Forget a window whose job has ended."""
        self._open.pop(job_id, None)

    def observe(self, job: Job, reading: Reading, attribution: Attribution, knobs: Knobs, version: int) -> bool:
        """Raise a running job's peaks by one reading, settle its charges, and return whether its row changed.

        Only a pool whose figures are of this reading counts as a sample.
        """
        kept = self.of(job, reading.at)
        used = _used(job, reading, attribution, kept.window.started_at, knobs)
        read_at = {pool: reading.pools[pool].read_at for pool in (RAM, job.device) if pool in reading.pools}
        amounts = {
            ("ram" if pool == RAM else "vram"): _without(used.get(pool), job.charges.get(pool, {}).get("inside", 0))
            for pool, moment in read_at.items()
            if moment != kept.read_at.get(pool)
        }
        kept.read_at = read_at
        busy = reading.pools[job.device].busy if job.device in reading.pools else None
        kept.window = observe(kept.window, reading.at, amounts, busy, knobs)
        if job.device:
            left = kept.unexplained_now = attribution.unexplained.get(job.device)
            kept.unexplained = left if kept.unexplained is None else max(kept.unexplained, left or 0)
        before = (job.used, job.charges)
        job.used = used
        job.charges = _settled(job, kept.window, reading.at, knobs, version)
        if RAM in job.charges:
            job.charges[RAM]["approximate"] = not attribution.exact.get(owner(job), True)
        self._save(job, kept, reading.at, knobs)
        return before != (job.used, job.charges)

    def _save(self, job: Job, kept: Open, at: float, knobs: Knobs) -> None:
        peaks = {kind: level.peak for kind, level in kept.window.levels.items()}
        proven = {
            ("ram" if pool == RAM else "vram"): peaks["ram" if pool == RAM else "vram"]
            for pool, charge in job.charges.items()
            if charge.get("basis") != inside.BASIS
            and charge.get("proof") in ("worked", "learned")
            and ("ram" if pool == RAM else "vram") in peaks
        }
        news = any(
            kind not in kept.told or peak > kept.told[kind] + flat_band(peak, knobs) for kind, peak in proven.items()
        )
        if at - kept.saved_at < SAVE_EVERY and peaks == kept.saved_peaks and not news:
            return
        instrument.save_window(owner(job), kept.window.as_data(), proven)
        kept.saved_at, kept.saved_peaks = at, peaks
        if news:
            kept.told = proven
            instrument.raise_version()  # estimates of waiting jobs of this key may stand on it now

    def close(
        self,
        job: Job,
        at: float,
        ended_at: datetime,
        outcome: str,
        knobs: Knobs,
        *,
        died_of: Mapping[str, Death],
        receipt: int | None,
        device_total: int | None,
        duration: float | None,
        kernel_peak: int | None = None,
        most: Mapping[str, int] | None = None,
    ) -> Sediment | None:
        """Make the sediment of an ended run, if anything was seen of it. ``drop`` its window when that is committed.

        ``duration`` is the runner's own figure in seconds, None where nobody saw the end; ``kernel_peak`` the
        kernel's in bytes for the largest process; ``most`` what the device gives to one run at most.
        """
        kept_open = self._of(job, at, begin=False)
        window = kept_open.window
        by_kind = {
            ("ram" if pool == RAM else "vram"): charge
            for pool, charge in job.charges.items()
            if charge.get("basis") != inside.BASIS
        }
        row = close(
            window,
            at,
            outcome,
            key=estimates.key_of(job),
            wall=ended_at.timestamp(),
            charge={kind: c["at_start"] for kind, c in by_kind.items()},
            cap={kind: c["cap"] for kind, c in by_kind.items() if c.get("cap") is not None},
            died_of=died_of,
            preallocated=took_what_it_was_given(window, device_total, _free_before(job), receipt, knobs=knobs),
            unexplained=_began_with(job, kept_open),
            note=_note(job, window, device_total, receipt, knobs),
            kernel_peak=kernel_peak,
            most=most,
            knobs=knobs,
        )
        kept = None
        if row is not None and job.kind != Kind.HOLD and (not row.by_kernel or rows.says_more(row)):
            row = replace(row, duration=row.duration if duration is None else duration)
            peaks = [row.peaks["vram"]] if job.device and "vram" in row.peaks else []
            kept = instrument.keep(row, owner(job), job.user.get_username(), ended_at, peaks)
        instrument.drop_window(owner(job))
        return kept


def _without(used: int | None, inside: int) -> int | None:
    """Return what of a job's use is not what it asked for while it ran: that is asked for again, and not learned."""
    return used if used is None or not inside else max(0, used - inside)


def owner(job: Job) -> str:
    """Return the name under which the instrument knows a job."""
    return f"job:{job.pk}"


def _free_before(job: Job) -> int | None:
    found = job.charges.get(job.device, {}).get("free_before")
    return found if isinstance(found, int) else None


def _began_with(job: Job, kept: Open) -> dict[str, int]:
    """Return bytes that no process list explains and that came and went with this run."""
    before = job.charges.get(job.device, {}).get("unexplained_before")
    grown = unexplained_growth(before, kept.unexplained, kept.unexplained_now)
    return {"vram": grown} if grown else {}


def _note(job: Job, window: Window, device_total: int | None, receipt: int | None, knobs: Knobs) -> str:
    """Return what to say of a peak that looks like a preallocation and that no receipt of the cap covers."""
    cap = job.charges.get(job.device, {}).get("cap")
    if receipt is None and looks_preallocated(window, device_total, _free_before(job), cap=cap, knobs=knobs):
        return "vram: most came at once, near a usual share of what there was: it may be a preallocation, not a need"
    return ""


def store_version() -> int:
    """Return the version that estimates are cached under."""
    return rows.version()


def _used(
    job: Job, reading: Reading, attribution: Attribution, started_at: float, knobs: Knobs
) -> dict[str, int | None]:
    """Return bytes per pool that the job holds now, None where it cannot be told; pools never touched are left out.

    A list of processes from before the job began says nothing about it.
    """
    seen = attribution.owners.get(owner(job), {})
    used: dict[str, int | None] = {}
    for pool, amount in seen.items():
        sample = reading.pools.get(pool)
        moment = None if sample is None else sample.read_at
        fresh = moment is not None and moment >= started_at and reading.at - moment <= knobs.stale_seconds
        if pool in job.charges or amount != 0:
            used[pool] = amount if fresh else None
    return used


def _settled(job: Job, window: Window, at: float, knobs: Knobs, version: int) -> dict[str, Any]:
    charges: dict[str, Any] = {}
    vram = window.levels.get("vram")
    seen = (vram is not None and vram.peak > 0) if job.device else None
    for pool, charge in job.charges.items():
        if charge.get("basis") == inside.BASIS or job.kind == Kind.HOLD:  # a promise: it stays as it was granted
            charges[pool] = {**charge, "cap": None, "held": held(charge["granted"], job.used.get(pool))}
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
            seconds_to_peak=estimates.seconds_to_peak(job, version, kind),
            shape_varies=bool(job.workload and job.workload.shape_varies),
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
