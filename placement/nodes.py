"""Nodes and devices as the gate sees them: what is declared, beside the newest readings, with their ages."""

from __future__ import annotations

from collections.abc import Iterable

from calibration import clock
from calibration.domain.samples import RAM, PoolState
from calibration.models import PoolNow
from placement.domain.containing.visible import Seen
from placement.domain.declaring import by_hand
from placement.domain.knobs import Knobs
from placement.domain.world.snapshot import Device, Hold, Node, Pool
from placement.models import Cycle, Job
from placement.models import Device as DeviceRow
from placement.models import Node as NodeRow


def hold_of(row: Cycle | NodeRow | DeviceRow | Job, wall: float) -> Hold | None:
    """Return the hold on a row, None where there is none or its time is over."""
    if not row.held_by or row.held_at is None:
        return None
    until = row.held_until.timestamp() if row.held_until else None
    if until is not None and until <= wall:
        return None
    return Hold(who=row.held_by, since=row.held_at.timestamp(), until=until, why=row.held_why)


def node_of(
    node: NodeRow,
    devices: list[DeviceRow],
    pools: dict[tuple[str, str], PoolNow],
    at: float,
    epoch: str,
    wall: float,
    knobs: Knobs,
) -> Node:
    """Return a declared node with its devices and their newest readings."""
    tick_age = clock.age(node.tick_clock, node.epoch, at)
    ram = _pool(node.name, RAM, "ram", "RAM", node.ram_declared, pools.get((node.name, RAM)), at)
    return Node(
        name=node.name,
        ram=ram,
        devices=tuple(
            _device(d, ram, pools.get((node.name, d.uuid)), at, wall, twice(d, devices)) for d in _placeable(devices)
        ),
        state=_node_state(node, tick_age, knobs),
        hold=hold_of(node, wall),
        tick_age=tick_age,
        work_age=_work_age(node, at),
        ram_pressure=node.ram_pressure,
        ram_marks=(node.ram_high, node.ram_low) if node.ram_high and node.ram_low else None,
        disk_free=node.disk_free,
        processes_free=node.processes_free,
        simulated=any(d.simulated for d in devices),
        watch_policy=node.watch_policy,
        engines=_engines(node.containers),
        engines_why=str((node.containers or {}).get("sentence") or ""),
    )


def _engines(told: object) -> tuple[str, ...] | None:
    """Return the engines that a node's row names, None where it says nothing."""
    works = told.get("works") if isinstance(told, dict) else None
    return tuple(str(engine) for engine in works) if isinstance(works, list) else None


def _node_state(node: NodeRow, tick_age: float | None, knobs: Knobs) -> str:
    if node.draining:
        return "draining"
    if tick_age is None:
        return "joining"
    return "ready" if tick_age <= knobs.node_stale_seconds else "stale"


def _work_age(node: NodeRow, at: float) -> float | None:
    """Return how long a start message has lain untaken: 0 when all were taken, None when none was ever sent."""
    if node.start_sent_clock is None:
        return None
    taken = node.start_taken_clock or float("-inf")
    return 0.0 if taken >= node.start_sent_clock else max(0.0, at - node.start_sent_clock)


def _placeable(devices: list[DeviceRow]) -> list[DeviceRow]:
    """Return the devices that jobs may go to: not those whose instances are. One without instances says why not."""
    parents = {device.parent for device in devices}
    return [device for device in devices if not (device.heading and device.uuid in parents)]


def seen(device: DeviceRow) -> Seen:
    """Return a device as commands are shown it, by its name."""
    number = device.index if device.driver_number is None else device.driver_number
    return Seen(device.name, number, tuple(device.backends), device.kind)


def twice(device: DeviceRow, others: Iterable[DeviceRow]) -> str:
    """Return why nothing new starts on a device by hand: one that was found has its driver's number; "" if none has.

    MIG instances are shown by name, so theirs do not count.
    """
    if not device.by_hand:
        return ""
    found = [(seen(row), row.declared) for row in others if not (row.by_hand or row.retired or row.parent)]
    return by_hand.closed(seen(device), device.declared, found)


def _device(device: DeviceRow, ram: Pool, row: PoolNow | None, at: float, wall: float, said: str) -> Device:
    own = _pool(ram.node, device.uuid, "vram", device.name, device.declared, row, at)
    shares = device.shares or device.one_pool
    return Device(
        uuid=device.uuid,
        node=ram.node,
        name=device.name,
        index=device.index,
        pool=ram if shares else own,
        own=own if shares else None,
        kind=device.kind,
        backend=device.backend,
        exclusive_only=device.exclusive_only,
        hold=hold_of(device, wall),
        draining=device.draining,
        measurable=device.measurable,
        more_backends=tuple(device.backends[1:]),
        any_gpu=device.any_gpu,
        twice=said,
    )


def _pool(node: str, pool: str, kind: str, name: str, declared: int | None, row: PoolNow | None, at: float) -> Pool:
    if row is None:
        return Pool(
            node,
            pool,
            kind,
            name,
            declared or 0,
            None,
            None,
            None,
            PoolState.NOT_READY,
            None,
            external=None,
            unexplained=None,
        )
    return Pool(
        node=node,
        pool=pool,
        kind=kind,
        name=name,
        declared=declared if declared is not None else (row.total or 0),
        total=row.total,
        free=row.free,
        used=row.used,
        state=PoolState(row.state),
        age=clock.age(row.read_at, row.epoch, at),
        message=row.message,
        reserved=row.reserved,
        external=row.external,
        external_who=tuple((who[0], who[1], who[2], who[3]) for who in row.external_who),
        unexplained=row.unexplained,
        draining=row.draining,
    )
