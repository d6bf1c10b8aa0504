"""What a reading says of a running job that its lease does not: sentences that stand beside its state."""

from __future__ import annotations

from calibration.domain.resources import gib
from calibration.domain.samples import RAM, PoolState, Reading
from placement import inside
from placement.domain import containers as container_rules
from placement.domain.taken import Kind
from placement.models import Job
from placement.services import taking

_CACHED_WORTH_TELLING = 1 << 30


def of(job: Job, reading: Reading, cached: int, over: int) -> list[str]:
    """Return what stands beside a running job, as words; ``cached`` bytes of its files the kernel could drop."""
    return [*taking.words(job), *_flags(job, reading, over), *_cached(cached)]


def _flags(job: Job, reading: Reading, over: int) -> list[str]:
    """Return sentences about a job's memory that its lease does not say; ``over`` bytes above a charge are no news."""
    flags = [
        f"uses {gib(used, granted)} on {reading.pools[pool].name}, above the {gib(granted, used)} that it was granted"
        for pool, charge in sorted(job.charges.items())
        if pool in reading.pools
        and (used := job.used.get(pool)) is not None
        and job.kind != Kind.HOLD
        and used - (granted := inside.granted(charge)) > max(over, charge.get("margin") or 0)
    ]
    for pool, used in sorted(job.used.items()):
        if pool in (RAM, job.device) or pool in job.charges or not used:
            continue
        name = reading.pools[pool].name if pool in reading.pools else pool
        leased = reading.pools[job.device].name if job.device in reading.pools else (job.device or "no device")
        flags.append(f"uses {gib(used)} on {name}, which it does not lease (it leases {leased})")
    if job.device and job.device in job.used and job.used[job.device] is None:
        flags.append("its device memory is not reported by the driver")
    if unkept := container_rules.unkept(job.command, job.argv):
        flags.append(unkept)
    if job.device in reading.pools and reading.pools[job.device].state is PoolState.LOST:
        flags.append("its device is lost")
    return flags


def _cached(size: int) -> list[str]:
    """Return what to say of file pages that a job keeps in memory: they are not charged to it."""
    if size < _CACHED_WORTH_TELLING:
        return []
    return [f"+{gib(size)} of cached files, which are no need: the kernel can drop them"]
