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
from calibration.domain.deaths import Death
from calibration.domain.knobs import Knobs
from calibration.domain.preallocation import looks_preallocated, took_what_it_was_given
from calibration.domain.samples import RAM, Attribution, Reading
from calibration.domain.windows import Window, close, flat_band, observe
from calibration.models import OpenWindow, Sediment
from placement import estimates, inside
from placement.domain.submitting.taken import Kind
from placement.models import Job
from placement.services import engines
from placement.services.settling import pool_of_both, settled

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
    device_peaks: dict[str, int] = field(default_factory=dict)  # by device, since this process watches


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
            ago = max(0.0, time.time() - began) if (began := _began(job)) else 0.0
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
        if job.image and engines.begun_at(job) is None:
            return False  # its image is being fetched: what the client takes is no need
        kept = self.of(job, reading.at)
        used = _used(job, reading, attribution, kept.window.started_at, knobs)
        read_at = {pool: reading.pools[pool].read_at for pool in (RAM, *job.devices) if pool in reading.pools}
        new = [pool for pool, moment in read_at.items() if moment != kept.read_at.get(pool)]
        own = _without_asked(job, used)
        amounts = {"ram": own.get(RAM)} if RAM in new else {}
        if any(pool != RAM for pool in new):
            amounts["vram"] = _most(job, own, kept.device_peaks)
        kept.read_at = read_at
        if pool_of_both(job) == RAM:  # what each kind needs is learned apart, though both came out of one pool
            amounts = _apart(amounts, used.get(job.device))
        works = [reading.pools[device].busy for device in job.devices if device in reading.pools]
        busy = max((share for share in works if share is not None), default=None)
        kept.window = observe(kept.window, reading.at, amounts, busy, knobs)
        if job.device:
            left = kept.unexplained_now = attribution.unexplained.get(job.device)
            kept.unexplained = left if kept.unexplained is None else max(kept.unexplained, left or 0)
        before = (job.used, job.charges)
        job.used = used
        job.charges = settled(job, kept.window, reading.at, knobs, version)
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
        tells: bool = True,
    ) -> Sediment | None:
        """Make the sediment of an ended run, if anything was seen of it. ``drop`` its window when that is committed.

        ``duration`` is the runner's own figure in seconds, None where nobody saw the end; ``kernel_peak`` the
        kernel's in bytes for the largest process; ``most`` what the device gives to one run at most. Where it
        does not tell all of it, because containers of its own took more, nothing is kept: zero would be a wrong need.
        """
        if not tells:
            instrument.drop_window(owner(job))
            return None
        kept_open = self._of(job, at, begin=False)
        window = kept_open.window
        # Of a charge for both kinds in one pool no part is known to be either's: it says nothing of what each needs.
        by_kind = {} if pool_of_both(job) == RAM else _by_kind(job)
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
            if peaks and len(job.devices) > 1:
                peaks = sorted(kept_open.device_peaks.values(), reverse=True) or peaks
            kept = instrument.keep(row, owner(job), job.user.get_username(), ended_at, peaks)
        instrument.drop_window(owner(job))
        return kept


def _without_asked(job: Job, used: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return a job's use less what it asked for while it ran: that is asked for again, and not learned.

    Where a device and main memory are one pool, it is the device that asked.
    """
    more = {pool: charge.get("inside", 0) for pool, charge in job.charges.items()}
    if pool_of_both(job) == RAM and job.device:
        more = {job.device: more.get(RAM, 0)}
    return {
        pool: amount if amount is None or not more.get(pool) else max(0, amount - more[pool])
        for pool, amount in used.items()
    }


def owner(job: Job) -> str:
    """Return the name under which the instrument knows a job."""
    return f"job:{job.pk}"


def _began(job: Job) -> float | None:
    """Return the unix second from which a job's own memory counts: a container's image may take long to fetch."""
    if job.image:
        return engines.begun_at(job)
    return job.started_at.timestamp() if job.started_at else None


def _most(job: Job, used: Mapping[str, int | None], peaks: dict[str, int]) -> int | None:
    """Return the most that a job holds of any of its devices: what a device is expected to need is learned from it.

    None where that of one device cannot be told.
    """
    seen = [(device, used[device]) for device in job.devices if device in used]
    for device, amount in seen:
        if amount is not None:
            peaks[device] = max(amount, peaks.get(device, 0))
    known = [amount for _, amount in seen if amount is not None]
    return max(known) if known and len(known) == len(seen) else None


def _by_kind(job: Job) -> dict[str, Any]:
    """Return a charge per kind of memory, of several devices the largest."""
    found: dict[str, Any] = {}
    for pool, charge in job.charges.items():
        if charge.get("basis") == inside.BASIS or charge.get("unread"):  # nobody saw what it needed there
            continue
        kind = "ram" if pool == RAM else "vram"
        if kind not in found or charge["at_start"] > found[kind]["at_start"]:
            found[kind] = charge
    return found


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


def _apart(amounts: Mapping[str, int | None], on_device: int | None) -> dict[str, int | None]:
    """Return a sample with main memory without what the device took of it."""
    ram = amounts.get("ram")
    if "ram" not in amounts:
        return dict(amounts)
    return {**amounts, "ram": None if ram is None or on_device is None else max(0, ram - on_device)}
