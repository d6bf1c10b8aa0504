"""What a job is charged of each pool, with what it uses or, when it is over, the most that was seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Min
from django.utils import timezone

from calibration.domain.resources import gib
from calibration.domain.samples import RAM
from calibration.models import Sediment
from calibration.selectors import Trace, of_owner
from placement import snapshots
from placement.domain.containing.device_caps import UNREAD
from placement.domain.ending.watch_policy import SAID, in_force
from placement.domain.jobs import State
from placement.domain.world.requests import Exclusive, Gpu
from placement.inside import UNHELD
from placement.models import Device, Job, Lease, Node
from placement.selectors import pruned, tanks
from placement.selectors.wording import listing, mapping, whole

ALONE = "all of it, alone: nothing else starts there until the end"
PROMISED = "a promise: held whole until the end, used or not"


@dataclass(frozen=True, slots=True)
class ChargeRow:
    """What the job is charged of one pool. Percents are of the cap, None where there is nothing to draw.

    ``used`` is the use now; of a finished job it is the most that was seen.
    """

    kind: str  # "device" or "ram"
    pool: str
    used: str
    used_exact: str = field(repr=False)
    granted: str
    held: str
    at_start: str
    cap: str
    margin: str
    settled: bool
    note: str
    force: str  # what keeps the job within its cap
    proof: str = field(repr=False)  # on what evidence that is said
    tone: str
    used_at: float | None
    granted_at: float | None


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the chart of one kind of memory is made of. ``levels`` in bytes; unix seconds."""

    pool: str
    trace: Trace
    levels: Mapping[str, int | None]
    start: int
    end: int


def charges(job: Job, names: Mapping[str, str]) -> tuple[ChargeRow, ...]:
    """Return a row per pool, the device's first; ``names`` of devices by their UUID."""
    peaks = peaks_of(job) if job.state == State.FINISHED else None
    unknown = pruned.peak(job) if peaks is not None and not any(peaks.values()) else "not measured"
    watchdog = _watchdog(job)
    found = []
    for pool in sorted(mapping(job.charges), key=lambda p: p == RAM):
        charge = mapping(job.charges[pool])
        if charge.get(UNHELD) and peaks is not None:  # nothing was held there, and how much it used is not kept
            continue
        used = whole((mapping(job.used) if peaks is None else peaks).get(pool))
        granted = whole(charge.get("granted"))
        held, cap, margin = (whole(charge.get(name)) for name in ("held", "cap", "margin"))
        top = cap or granted or held  # where nothing is held what is used is all of it
        near = ", extrapolated since the last exact reading" if charge.get("approximate") and peaks is None else ""
        of_several = pool != RAM and len(job.devices) > 1  # of which the most that one held is kept, not whose it was
        mark = "≈ " if near else "" if peaks is None else "peak, at most " if of_several else "peak "
        found.append(
            ChargeRow(
                kind="ram" if pool == RAM else "device",
                pool="RAM" if pool == RAM else names.get(pool, pool),
                used="not measured" if charge.get("unread") else f"{mark}{gib(used)}" if used is not None else unknown,
                used_exact=f"{used:,} bytes{near}" if used is not None else "",
                granted=gib(granted),
                held=gib(held),
                at_start=gib(whole(charge.get("at_start"))),
                cap=gib(cap) if cap is not None else "none",
                margin=gib(margin) if margin is not None and not charge.get("unread") else "–",
                settled=bool(charge.get("settled")) and not charge.get("unread"),
                note=str(charge.get("note") or _promise(job, charge)),
                force=UNREAD if charge.get("unread") else _force(mapping(charge.get("force")), watchdog),
                proof=_proof(mapping(mapping(charge.get("force")).get("evidence"))),
                tone=tanks.tone(job.pk),
                used_at=_percent(used, top),
                granted_at=_percent(granted, top),
            )
        )
    return tuple(found)


def _promise(job: Job, charge: Mapping[str, Any]) -> str:
    """Return what a promise comes to: of somebody who has a device alone no bytes, but all of it."""
    if not charge.get("promise"):
        return ""
    return PROMISED if whole(charge.get("granted")) or job.exclusive == Exclusive.NO else ALONE


def _force(force: Mapping[str, Any], watchdog: str) -> str:
    sentence = str(force.get("sentence") or "")
    return f"{sentence}; {watchdog}" if watchdog and force.get("kind") == "watched" and sentence else sentence


def _watchdog(job: Job) -> str:
    """Return what the watchdog would do about a running job, "" of others: what was in force then is not kept."""
    if job.state != State.RUNNING:
        return ""
    node = Node.objects.filter(name=job.node).values_list("watch_policy", flat=True).first() or ""
    workload = job.workload.watch_policy if job.workload else ""
    return SAID[in_force(node, workload, snapshots.knobs_now()[0].watch_policy)]


def _proof(evidence: Mapping[str, Any]) -> str:
    """Return what says so: who was told, what a context is taken to cost, what the driver said, what stayed as set."""
    told = [f"{word} in pid {_listed(pids)}" for word in ("armed", "applied") if (pids := listing(evidence.get(word)))]
    if context := whole(evidence.get("context")):
        runs = whole(evidence.get("context_runs"))
        told.append(
            f"a context is taken to cost {gib(context)} "
            f"({f'learned from {runs} runs' if runs else 'by the knob context_allowance_mib: too few runs told'})"
        )
    if driver := evidence.get("driver"):
        told.append(f"no limit by the driver: {driver}")
    if kept := listing(evidence.get("kept")):
        told.append(f"as the submission set it: {_listed(kept)}")
    return " · ".join(told)


def _listed(found: Sequence[Any]) -> str:
    return ", ".join(str(one) for one in found[:5]) + (", …" if len(found) > 5 else "")


def lent(job: Job) -> tuple[str, ...]:
    """Return the devices that a job took from inside itself, those that it let go of too, in the order of the first."""
    if not job.charges:
        return ()
    blind = Device.objects.filter(measurable=False).values("uuid")
    rows = Lease.objects.filter(job=job.pk, request__isnull=False).exclude(pool__in=[RAM, *job.devices])
    first = rows.exclude(pool__in=blind).values("pool").annotate(first=Min("pk")).order_by("first")
    return tuple(first.values_list("pool", flat=True))


def kinds(job: Job, names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return what a job's charts are about, () for one that ended without having started: of several each device."""
    if job.state == State.FINISHED and (job.started_at is None or not job.charges):
        return ()
    takes_device = bool(job.device) if job.charges else job.gpu != Gpu.NONE
    more, own = lent(job), len(job.devices)
    devices = [("device", "Device memory")] if takes_device else []
    if more or own > 1:
        devices = [(f"device-{number}", names.get(uuid, uuid)) for number, uuid in enumerate((*job.devices, *more))]
        devices[own:] = [(kind, f"{name}, asked for as it ran,") for kind, name in devices[own:]]
    if any(mapping(charge).get("unread") for charge in mapping(job.charges).values()):
        devices = devices[own:] if more else []  # nobody measured the others
    return (*devices, ("ram", "RAM"))


def pool_of(job: Job, kind: str) -> str:
    """Return the pool that "ram", "device" (the first) or "device-1" (counted from 0) is of a job, "" for none.

    Those that it took from inside itself come after those with which it started.
    """
    if kind == "ram":
        return RAM
    number = int(kind.removeprefix("device").lstrip("-") or 0)
    pools = job.devices if number < len(job.devices) else (*job.devices, *lent(job))
    return pools[number] if number < len(pools) else ""


def drawn(job: Job, kind: str) -> Drawn | None:
    """Return what the chart of a kind shows (see ``pool_of``), None where the job holds none or has not started."""
    pool = pool_of(job, kind)
    charge = mapping(mapping(job.charges).get(pool))
    inside = pool not in (RAM, *job.devices)  # taken from inside: drawn when it is let go, too
    if not pool or not (charge or inside) or job.started_at is None:
        return None
    start, end = _second(job.started_at), _second(job.ended_at or timezone.now())
    need = mapping(mapping(mapping(job.estimate).get("pools")).get("ram" if kind == "ram" else "vram")).get("need")
    granted, at_start = whole(charge.get("granted")), whole(charge.get("at_start"))
    levels = {
        "cap": whole(charge.get("cap")),
        "charge": granted,
        "at_start": at_start if at_start != granted and not inside else None,
        "estimate": None if inside else whole(need),
    }
    measured = whole(mapping(job.used).get(pool)) is not None
    trace = of_owner(job.node, pool, f"job:{job.pk}", start, end, measured)
    return Drawn(pool, trace, levels, start, max(end, start + 1))


def _second(at: datetime) -> int:
    return int(at.timestamp())


def peaks_of(job: Job) -> dict[str, int | None]:
    """Return the most that was seen of each pool, None where it was not watched or nothing of the run was kept.

    Of several devices each has the figure of the one that had most.
    """
    kept = Sediment.objects.filter(owner=f"job:{job.pk}").order_by("-pk").first()
    peaks = mapping(kept.peaks if kept else None)
    return {RAM: whole(peaks.get("ram")), **dict.fromkeys(job.devices, whole(peaks.get("vram")))}


def _percent(part: int | None, top: int | None) -> float | None:
    return None if part is None or not top else min(100.0, round(part / top * 200) / 2)
