"""What runs of a workload asked for while they ran, as it is kept, and the requests that wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from placement.domain.world.asks import Ask
from placement.domain.world.devices import Backend, Kind

KEPT = 32  # different asks of a workload; of more those seen longest ago are forgotten
KEPT_S = 90 * 86_400.0


@dataclass(frozen=True, slots=True)
class Known:
    """Something that runs of a workload ask for, when it was last asked for (unix seconds)."""

    ask: Ask
    seen_at: float


@dataclass(frozen=True, slots=True)
class Pending:
    """A request of a running job that waits, since when (unix seconds). Given in the order in which they are served.

    ``order`` and ``priority`` are its place in the queue; ``devices`` the UUIDs of those that may serve it.
    """

    id: int
    ask: Ask
    since: float
    job: int | None = None
    order: int = 0
    priority: int = 0
    devices: tuple[str, ...] = ()


def remembered(known: Iterable[Known], ask: Ask, now: float) -> tuple[Known, ...]:
    """Return what is known with one more, newest first: equal asks count once, with the time of the last."""
    unplaced = replace(ask, node=None, label=None)  # another run may be on another node
    kept = [one for one in known if one.ask != unplaced and now - one.seen_at <= KEPT_S]
    return tuple(sorted([Known(unplaced, now), *kept], key=lambda one: -one.seen_at)[:KEPT])


def to_json(known: Iterable[Known]) -> list[dict[str, Any]]:
    """Return what is known as a row of the workload keeps it."""
    return [
        {
            "kind": one.ask.kind.value,
            "backend": one.ask.backend.value,
            "device_id": one.ask.device_id,
            "min_devices": one.ask.min_devices,
            "max_devices": one.ask.max_devices,
            "group_bytes": one.ask.group_bytes,
            "per_device_bytes": one.ask.per_device_bytes,
            "exclusive": one.ask.exclusive,
            "even": one.ask.even,
            "seen_at": one.seen_at,
        }
        for one in known
    ]


def from_json(kept: Iterable[Mapping[str, Any]]) -> tuple[Known, ...]:
    """Return what a row keeps; what another version wrote and this one cannot read is left out."""
    found = []
    for row in kept:
        try:
            ask = Ask(
                Kind(row["kind"]),
                Backend(row["backend"]),
                group_bytes=row.get("group_bytes", 0),
                per_device_bytes=row.get("per_device_bytes", 0),
                min_devices=row.get("min_devices", 1),
                max_devices=row.get("max_devices", 1),
                exclusive=row.get("exclusive", False),
                device_id=row.get("device_id"),
                even=row.get("even", True),
            )
            found.append(Known(ask, float(row["seen_at"])))
        except (KeyError, TypeError, ValueError):
            continue
    return tuple(found)
