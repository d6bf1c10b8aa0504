"""Who has a device or a machine alone: nobody joins whatever is left of it, so nothing is."""

from __future__ import annotations

from collections.abc import Iterable

from placement.domain.world.requests import Exclusive
from placement.inside import UNHELD
from placement.models import Device, Job
from placement.selectors.wording import mapping


def holder(
    jobs: Iterable[Job], node: str, device: Device | None = None, *, exclusive_only: bool | None = None
) -> Job | None:
    """Return which of the active jobs has the node, or the device on it, alone; None where nobody has.

    ``exclusive_only``: as the device would be declared, None: as it is.
    """
    one_at_a_time = bool(device and device.exclusive_only) if exclusive_only is None else exclusive_only
    return next((job for job in jobs if job.node == node and _has(job, device, one_at_a_time)), None)


def _has(job: Job, device: Device | None, one_at_a_time: bool) -> bool:
    if job.exclusive == Exclusive.MACHINE:
        return True
    if device is None:
        return False
    charge = mapping(mapping(job.charges).get(device.uuid))
    own = device.uuid in job.devices
    if own and job.exclusive == Exclusive.DEVICE:
        return True
    holds = own or (bool(charge) and not charge.get(UNHELD))
    return holds and (one_at_a_time or bool(charge.get("alone")))


def note(job: Job, device: Device | None = None) -> str:
    """Return the sentence that says so."""
    what = "the machine" if device is None or job.exclusive == Exclusive.MACHINE else device.name
    return f"#{job.pk} has {what} alone: nothing else starts on it"
