"""The same calls where there is no job: places in the order in which this process sees devices, and no lease."""

from __future__ import annotations

import os
import warnings
from typing import Any

from .asks import Ask, shares
from .errors import Impossible
from .seen import MASKS

_warned: list[bool] = []


def members(ask: Ask) -> list[dict[str, Any]]:
    """Return the places that the ask would have if nobody else were here."""
    if not _warned:
        _warned.append(True)
        warnings.warn(
            "This is no job of Tidegate (TIDEGATE_URL and TIDEGATE_TOKEN are not set): nothing is reserved.",
            RuntimeWarning,
            stacklevel=5,
        )
    count = ask.max_devices if ask.prefer_max else ask.min_devices
    mask = os.environ.get(MASKS.get(ask.backend, ""))
    if mask is not None:
        visible = len([part for part in mask.split(",") if part.strip()])
        if visible < ask.min_devices:
            raise Impossible(f"{ask} cannot be had: this process sees {visible} devices ({mask!r}).")
        count = min(count, visible)
    first = ask.device_id or 0
    return [
        {"kind": ask.kind, "backend": ask.backend, "device_id": first + n, "bytes": size, "position": first + n}
        for n, size in enumerate(shares(ask, count))
    ]
