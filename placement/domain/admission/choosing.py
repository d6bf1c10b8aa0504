"""Which of several places that fit is taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from placement.domain.admission.demands import Part, over
from placement.domain.admission.places import Place
from placement.domain.world.requests import Gpu, Request


def best_fit(request: Request, place: Place, parts: Sequence[Part]) -> tuple[Any, ...]:
    """Return the sort key of a place that fits: a first run takes the emptiest, others the one with least left over.

    A group has as few devices as fit, or as many where that is preferred; of equal counts the one that shares find
    which are given out largest first, each to the device with the least left over, of equal ones the first.
    """
    if request.gpu is not Gpu.GROUP:
        return over(parts[0]), place.order
    index = {device.pool.pool: device.index for device in place.devices}
    count = len(place.devices)
    members = tuple((over(part), index.get(part.pool.pool, 0)) for part in parts[:count])
    return -count if request.prefer_max else count, members, place.order
