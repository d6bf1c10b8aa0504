"""The numbers of a node's devices: which are taken, and whether a job on one device would be shown another by it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from placement.domain.declaring import by_hand
from placement.models import Device
from placement.nodes import seen


def known(rows: Iterable[Device]) -> frozenset[tuple[str, int]]:
    """Return the kinds and ids that devices are known by."""
    return frozenset((row.kind, row.index) for row in rows)


def clash(device: Device, changes: Mapping[str, Any], others: Iterable[Device]) -> dict[str, str]:
    """Return beside its field why an edit's number, or backends, would show jobs another device; {} if they do not.

    MIG instances are shown by name, so theirs do not count.
    """
    if not {"backends", "index", "driver_number"} & changes.keys():
        return {}
    after = copy.copy(device)
    after.index = changes.get("index", device.index)
    after.driver_number = changes.get("driver_number", device.driver_number)
    if "backends" in changes:
        after.backends = by_hand.stored(changes["backends"], "" if device.by_hand else device.backend)
    said = "" if device.parent else by_hand.seen_twice(seen(after), [seen(row) for row in others if not row.parent])
    field = "backends" if not device.by_hand else "index" if after.driver_number is None else "driver_number"
    return {field: said} if said else {}
