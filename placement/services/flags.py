"""Sentences beside a running job: what its lease does not say, and what is outside of our reach."""

from __future__ import annotations

from calibration.domain.resources import gib
from calibration.domain.samples import RAM, PoolState, Reading
from placement import inside
from placement.domain.containing import containers
from placement.domain.submitting.taken import Kind
from placement.models import Job
from placement.services import engines, taking

_CACHED_WORTH_TELLING = 1 << 30


def of(job: Job, reading: Reading, over: int, cached: int) -> list[str]:
    """Return sentences about a job; ``over`` bytes above a charge are no news, ``cached`` are bytes of file pages."""
    flags = [
        f"uses {gib(used, granted)} {'of' if pool == RAM else 'on'} {reading.pools[pool].name}, "
        f"above the {gib(granted, used)} that it was granted"
        for pool, charge in sorted(job.charges.items())
        if pool in reading.pools
        and (used := job.used.get(pool)) is not None
        and job.kind != Kind.HOLD
        and not charge.get(inside.UNHELD)
        and used - (granted := inside.granted(charge)) > max(over, charge.get("margin") or 0)
    ]
    flags = [*taking.words(job), *flags]
    for pool, used in sorted(job.used.items()):
        holds = pool in job.charges and not job.charges[pool].get(inside.UNHELD)
        if pool == RAM or pool in job.devices or holds or not used:
            continue
        name = reading.pools[pool].name if pool in reading.pools else pool
        leased = " + ".join(_name(device, reading) for device in job.devices) or "no device"
        flags.append(f"uses {gib(used)} on {name}, which it does not lease (it leases {leased})")
    if any(device in job.used and job.used[device] is None for device in job.devices):
        flags.append("its device memory is not reported by the driver")
    if job.image:
        flags += engines.flags(job)
    elif unkept := containers.unkept(job.command, job.argv):
        flags.append(unkept)
    for device in (device for device in job.devices if device in reading.pools):
        which = f"its device {_name(device, reading)}" if len(job.devices) > 1 else "its device"
        if reading.pools[device].state is PoolState.LOST:
            flags.append(f"{which} is lost")
        elif reading.pools[device].state is PoolState.GONE:
            flags.append(f"{which} is gone: a MIG instance, removed")
    if cached >= _CACHED_WORTH_TELLING:
        flags.append(f"+{gib(cached)} of cached files, which are no need: the kernel can drop them")
    return flags


def _name(device: str, reading: Reading) -> str:
    return reading.pools[device].name if device in reading.pools else device
