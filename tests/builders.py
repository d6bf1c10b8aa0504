"""Small builders for snapshots: MIB and GIB in, frozen values out; whatever a test does not name is unremarkable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibration.domain.estimate import Basis, Estimate, PoolEstimate
from calibration.domain.samples import PoolState
from placement.domain.admission.demands import promised
from placement.domain.knobs import Knobs
from placement.domain.world.requests import Exclusive, Gpu, shared
from placement.domain.world.snapshot import Charge, Device, KeptPlan, Node, Pool, Running, Snapshot, Waiting

MIB = 1 << 20
GIB = 1 << 30
EXACT = Knobs.with_overrides({"floor_vram_mib": 0, "floor_ram_mib": 0})
"""Nothing is kept free, so that rooms are round figures."""
_OF_DEVICE = ("exclusive_only", "hold", "draining", "measurable", "backend", "more_backends", "any_gpu", "kind")


def a_pool(total: int | None, used: int | None = 0, *, name: str = "gpu0", **more: Any) -> Pool:
    """Return a readable pool; free is what is neither used nor reserved unless given."""
    kind = more.pop("kind", "vram")
    reserved = more.get("reserved")
    free = more.pop("free", None if total is None or used is None else total - used - (reserved or 0))
    return Pool(
        node=more.pop("node", "atlas"),
        pool=more.pop("pool", "ram" if kind == "ram" else f"GPU-{name}"),
        kind=kind,
        name=name,
        declared=more.pop("declared", total or 0),
        total=total,
        free=free,
        used=used,
        **more,
    )


def a_ram(total: int = 64 * GIB, used: int | None = 0, **more: Any) -> Pool:
    """Return a node's main memory."""
    return a_pool(total, used, name="RAM", kind="ram", **more)


def a_device(total: int | None = 24 * GIB, used: int | None = 0, *, index: int = 0, **more: Any) -> Device:
    """Return a device; arguments that a pool knows go to its pool."""
    own = {k: more.pop(k) for k in _OF_DEVICE if k in more}
    name = f"gpu{index}"
    node = more.get("node", "atlas")
    more.setdefault("pool", f"GPU-{node}-{index}" if node != "atlas" else f"GPU-{index}")
    pool = a_pool(total, used, name=name, **more)
    return Device(uuid=pool.pool, node=node, name="card", index=index, pool=pool, **own)


def a_node(*devices: Device, ram: Pool | None = None, name: str = "atlas", **more: Any) -> Node:
    """Return a ready node."""
    return Node(name=name, ram=ram or a_ram(node=name), devices=devices, **more)


def an_estimate(
    vram: int | None = None, ram: int | None = 0, *, basis: Basis = Basis.MEASURED, margin: int = 0, gpu: bool = True
) -> Estimate:
    """Return an estimate; None is unknown and stands on a cold start."""

    def pool(kind: str, need: int | None) -> PoolEstimate:
        unknown = need is None
        return PoolEstimate(kind, need, Basis.COLD_START if unknown else basis, 0 if unknown else margin, ())

    pools = {"ram": pool("ram", ram)} | ({"vram": pool("vram", vram)} if gpu else {})
    needs = [p.need for p in pools.values()]
    known = sum(n for n in needs if n is not None)
    return Estimate(pools, min(p.basis for p in pools.values()), None if None in needs else known, known)


def a_waiting(job: int, vram: int | None = None, ram: int | None = 0, **more: Any) -> Waiting:
    """Return a queued job that wants one device (``gpu=False``: none); ``arrival`` is its number.

    ``group`` are the fewest and the most devices of one that wants a group, ``each`` and ``together`` exact bytes.
    """
    gpu, group = more.pop("gpu", True), more.pop("group", None)
    request = shared(
        Gpu.GROUP if group else Gpu.ONE if gpu else Gpu.NONE,
        more.pop("exclusive", Exclusive.NO),
        more.pop("node", None),
        more.pop("device", None),
        *(group or (1, 1)),
        more.pop("prefer_max", False),
        more.pop("each", None),
        more.pop("together", None),
        more.pop("even", True),
        more.pop("kind", None),
        more.pop("backend", None),
        engine=more.pop("engine", ""),
    )
    basis, margin = more.pop("basis", Basis.MEASURED), more.pop("margin", 0)
    estimate = more.pop("estimate", None) or an_estimate(vram, ram, basis=basis, margin=margin, gpu=gpu)
    estimate = promised(request, estimate)
    return Waiting(job, f"job-{job}", "alice", more.pop("arrival", job), request, estimate, **more)


def a_running(
    job: int, vram: int | None = None, used: int | None = 0, *, device: int | None = 0, ram: int = 0, **more: Any
) -> Running:
    """Return a running job that holds ``vram`` of a device and ``ram``; ``used`` is measured on the device.

    ``others`` are further devices of which it holds the same.
    """
    node = more.pop("node", "atlas")
    at_start, ram_used = more.pop("at_start", vram), more.pop("ram_used", 0)
    charges: dict[str, Charge] = {"ram": Charge(ram, max(ram, ram_used or 0), ram_used, ram)}
    numbers = () if device is None else (device, *more.pop("others", ()))
    uuids = tuple(f"GPU-{number}" if node == "atlas" else f"GPU-{node}-{number}" for number in numbers)
    cap = more.pop("cap", None) if vram is not None and uuids else None
    for uuid in uuids if vram is not None else ():
        charges[uuid] = Charge(vram, max(vram, used or 0), used, at_start or vram, cap=cap)
    return Running(job, f"job-{job}", "alice", node, charges, uuids, **more)


def a_snapshot(
    *nodes: Node,
    running: tuple[Running, ...] = (),
    waiting: tuple[Waiting, ...] = (),
    knobs: Knobs | Mapping[str, object] = EXACT,
    at: float = 1000.0,
    **more: Any,
) -> Snapshot:
    """Return a snapshot, by default of one node with one empty 24 GiB device."""
    turned = knobs if isinstance(knobs, Knobs) else Knobs.with_overrides(knobs)
    return Snapshot(
        at=at,
        wall=1_700_000_000.0,
        nodes=nodes or (a_node(a_device()),),
        running=running,
        waiting=waiting,
        knobs=turned,
        **more,
    )


__all__ = [
    "EXACT",
    "GIB",
    "MIB",
    "KeptPlan",
    "PoolState",
    "a_device",
    "a_node",
    "a_pool",
    "a_ram",
    "a_running",
    "a_snapshot",
    "a_waiting",
    "an_estimate",
]
