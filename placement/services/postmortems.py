"""Ask who is to blame for a run that died of memory: the readings of its last minute, and what each was granted."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from calibration.domain.samples import RAM, Attribution
from calibration.models import Point, PoolNow
from placement.domain.ending.outcomes import Verdict
from placement.domain.ending.postmortem import BEFORE_S, Blame, Case, Finding, Look, find
from placement.domain.jobs import Outcome
from placement.models import Job

_NOW_COUNTS_S = 5.0  # seconds after an end for which the present reading still shows who took the memory


def of(
    job: Job,
    verdict: Verdict,
    receipt: Mapping[str, Any] | None,
    at: datetime,
    now: tuple[float, Attribution] | None,
    group: Mapping[str, int] | None = None,
) -> Finding | None:
    """Return the finding on an end, None where no memory ran out. ``now`` is a reading (unix second) that saw it.

    ``group`` are the counters of its control group: of one that died at its own limit the most that was in use is
    told, which no look a second saw.
    """
    if verdict.memory is None or verdict.outcome not in (Outcome.CAP_EXCEEDED, Outcome.OUT_OF_MEMORY):
        return None
    pool = RAM if verdict.memory == "ram" else _device(job)
    if not pool or not job.node:
        return None
    charge = job.charges.get(pool, {})
    held, asked = (None if receipt is None else receipt.get(name) for name in ("held", "asked"))
    watched = job.evidence.get("watchdog", {})
    figures = [job.used.get(pool), held if verdict.memory == "vram" else None]
    figures.append(watched.get("used") if watched.get("pool") == pool else None)
    if verdict.memory == "ram" and verdict.outcome is Outcome.CAP_EXCEEDED and (group or {}).get("oom"):
        figures.append((group or {}).get("memory_peak"))
    known = [figure for figure in figures if figure is not None]
    looks, outsiders = _seen(job, pool, at.timestamp(), now)
    return find(
        Case(
            owner=f"job:{job.pk}",
            granted=charge.get("granted"),
            used=max(known) if known else None,
            looks=looks,
            asked=asked if verdict.memory == "vram" else None,
            at_cap=verdict.outcome is Outcome.CAP_EXCEEDED,
            granted_to=_granted(job, pool),
            outsiders=outsiders,
            main=_size(job.node) if pool == RAM else None,
        )
    )


def kept(finding: Finding) -> dict[str, Any]:
    """Return the finding as the job's evidence keeps it."""
    words = {"blame": finding.blame.value, "told": finding.told, "grower": finding.who}
    return {**words, "grew": finding.grew, "used": finding.used, "granted": finding.granted}


def is_victim(job: Job) -> bool:
    """Return whether somebody else took the memory that this run lacked."""
    found = job.evidence.get("postmortem")
    return isinstance(found, dict) and found.get("blame") == Blame.VICTIM


def _device(job: Job) -> str:
    """Return the device that ran out: of a group the one that the watchdog named, else the one nearest to its cap."""
    named = job.evidence.get("watchdog", {}).get("pool")
    if named in job.devices or len(job.devices) < 2:
        return named if named in job.devices else job.device

    def left(device: str) -> int:
        charge = job.charges.get(device, {})
        return (charge.get("cap") or charge.get("granted") or 0) - (job.used.get(device) or 0)

    return min(job.devices, key=left)


def _seen(
    job: Job, pool: str, at: float, now: tuple[float, Attribution] | None
) -> tuple[list[Look], tuple[tuple[int, str, str, int | None], ...]]:
    points = Point.objects.filter(node=job.node, pool=pool, step=1, at__gte=at - BEFORE_S - 5, at__lte=at + 1)
    looks = [Look(float(one.at), one.used, one.owners) for one in points.order_by("at")]
    row = PoolNow.objects.filter(node=job.node, pool=pool).first()
    outsiders = tuple((w[0], w[1], w[2], w[3]) for w in row.external_who) if row else ()
    if now is not None and 0 <= now[0] - at <= _NOW_COUNTS_S:
        found = now[1]
        external, rest = found.external.get(pool), found.unexplained.get(pool)
        owners = {owner: by.get(pool, 0) for owner, by in found.owners.items() if by.get(pool, 0) != 0}
        known = [amount for amount in owners.values() if amount is not None]
        if external is not None and rest is not None and len(known) == len(owners):
            mine = f"job:{job.pk}"
            gone = looks[-1].owners.get(mine) if looks else None  # it has ended: what it had is free by now
            if gone and not owners.get(mine):
                owners[mine] = gone
            looks.append(Look(now[0], sum(known) + external + rest + (gone or 0), owners))
            outsiders = found.external_who.get(pool) or outsiders
    return looks, outsiders


def _size(node: str) -> int | None:
    return PoolNow.objects.filter(node=node, pool=RAM).values_list("total", flat=True).first()


def _granted(job: Job, pool: str) -> dict[str, int]:
    """Return what each other job on its node is granted there; those that end in the same look, too."""
    others = Job.objects.filter(node=job.node, state="running").exclude(pk=job.pk).values_list("pk", "charges")
    return {f"job:{pk}": charges[pool]["granted"] for pk, charges in others if pool in charges}
