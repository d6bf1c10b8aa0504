"""Nodes and devices as the API tells them."""

from __future__ import annotations

from typing import Any

from calibration import clock
from calibration.domain.samples import RAM
from calibration.models import PoolNow
from placement.models import Device, Node, Role
from placement.nodes import twice
from placement.selectors import access, alone, devices, wire


def nodes(user: Any) -> list[dict[str, Any]]:
    """Return all nodes with their devices."""
    read = _Read(user)
    return [_node(row, read) for row in devices.nodes()]


def node(user: Any, row: Node) -> dict[str, Any]:
    """Return one node."""
    return _node(row, _Read(user, row.name))


def device(user: Any, row: Device) -> dict[str, Any]:
    """Return one device."""
    return _device(row, row.node.name, _Read(user, row.node.name))


class _Read:
    """The newest readings, of one node or of all."""

    def __init__(self, user: Any, node: str = "") -> None:
        rows = PoolNow.objects.filter(node=node) if node else PoolNow.objects.all()
        self._rows = {(row.node, row.pool): row for row in rows}
        self._at = clock.now()
        self._sees = access.at_least(user, Role.OPERATOR)
        self._active = devices.active_jobs()

    def alone(self, node: str, device: Device | None = None) -> int | None:
        """Return the job that has a node or a device alone."""
        found = alone.holder(self._active, node, device)
        return found.pk if found else None

    def of(self, node: str, pool: str, alone_by: int | None) -> dict[str, Any] | None:
        """Return the reading of a pool, None before the first."""
        row = self._rows.get((node, pool))
        return None if row is None else wire.pool(row, self._at, self._sees, alone_by)


def _node(row: Node, read: _Read) -> dict[str, Any]:
    by = read.alone(row.name)
    inside = sorted((d for d in row.devices.all() if not d.retired), key=lambda d: (d.by_hand, d.index, d.name, d.pk))
    return {
        "id": row.pk,
        "name": row.name,
        "ram_declared": row.ram_declared,
        "ram_high": row.ram_high,
        "ram_low": row.ram_low,
        "watch_policy": row.watch_policy,
        "ram_pressure": row.ram_pressure,
        "draining": row.draining,
        "held": wire.hold(row),
        "disk_free": row.disk_free,
        "tick_ms": row.tick_ms,
        "broker_away_since": row.broker_away_since,
        "capacity_note": row.capacity_note,
        "alone": by,
        "pool": read.of(row.name, RAM, by),
        "devices": [_device(one, row.name, read) for one in inside],
    }


def _device(row: Device, node: str, read: _Read) -> dict[str, Any]:
    by = read.alone(node, row)
    return {
        "id": row.pk,
        "uuid": row.uuid,
        "node": node,
        "name": row.name,
        "index": row.index,
        "kind": row.kind,
        "backend": row.backend,
        "backends": row.backends,
        "model": row.model,
        "declared": row.declared,
        "exclusive_only": row.exclusive_only,
        "draining": row.draining,
        "measurable": row.measurable,
        "by_hand": row.by_hand,
        "any_gpu": row.any_gpu,
        "driver_number": row.driver_number,
        "closed": twice(row, row.node.devices.all()),
        "simulated": row.simulated,
        "parent": row.parent,
        "heading": row.heading,
        "shares": row.shares,
        "one_pool": row.one_pool,
        "held": wire.hold(row),
        "alone": by,
        "pool": read.of(node, row.uuid, by),
    }
