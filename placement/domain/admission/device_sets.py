"""Which devices of a node a group may take together.

Of eight devices alike or fewer every set is a place of its own: at most 255. Of more, sets are chosen for each
demand (many_devices.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from placement.domain.world.requests import Gpu, Request
from placement.domain.world.snapshot import Device, Node

FEW = 8


def device_sets(node: Node, request: Request) -> Iterator[tuple[Device, ...]]:
    """Yield each set that the request allows, its devices in the node's order; none of several of a crowd."""
    there = [device for device in node.devices if allows(device, request)]
    if request.gpu is not Gpu.GROUP or request.min_devices == 1:
        yield from ((device,) for device in there)
    if request.gpu is not Gpu.GROUP:
        return
    found: dict[tuple[str, ...], tuple[Device, ...]] = {}  # two may have several backends in common
    for alike in _kinds(there, node, request.backend):
        if len(alike) <= FEW:
            for count in range(max(2, request.min_devices), min(request.max_devices, len(alike)) + 1):
                found |= {tuple(device.uuid for device in row): row for row in combinations(alike, count)}
    yield from found.values()


def members(node: Node, request: Request) -> Iterator[list[Device]]:
    """Yield the devices alike of which a group of several may consist, where there are enough of them."""
    if request.max_devices > 1:
        there = [device for device in node.devices if allows(device, request)]
        alike = _kinds(there, node, request.backend)
        yield from (some for some in alike if len(some) >= max(2, request.min_devices))


def thinned(counts: Sequence[int]) -> list[int]:
    """Return some of many numbers, in their order: all of a few, else the first, second, fourth … and last."""
    if len(counts) <= FEW:
        return list(counts)
    found, at = [], 1
    while at < len(counts):
        found.append(counts[at - 1])
        at *= 2
    return [*found, counts[-1]]


def allows(device: Device, request: Request) -> bool:
    """Return whether a request allows a device: by its UUID, its kind, one of its backends and who runs it there.

    One that names none of these means the devices that are open to it: those that are measured, and unmeasured GPUs
    of which an admin says so.
    """
    if not device.for_container(request.engine) or (request.among is not None and device.uuid not in request.among):
        return False
    if not (device.open or request.names):
        return False
    if request.device not in (None, device.uuid) or request.kind not in (None, device.kind):
        return False
    return request.backend is None or request.backend in device.backends


def only_named(node: Node, request: Request) -> list[Device]:
    """Return the devices of a node that a request would mean if it named their kind or backend, and so does not."""
    if request.names or request.gpu is Gpu.NONE:
        return []
    return [device for device in node.devices if not device.open and device.for_container(request.engine)]


def most_together(node: Node, request: Request) -> int:
    """Return how many devices of a node one job may take at most, of those that its request allows."""
    there = [device for device in node.devices if allows(device, request)]
    alike = _kinds(there, node, request.backend)
    return max((len(several) for several in alike), default=min(1, len(there)))


def together(one: Device, other: Device) -> bool:
    """Return whether one process can use both, and both are measured or neither is: what is learned is of all."""
    alike = (one.kind, one.measurable) == (other.kind, other.measurable)
    return alike and not set(one.backends).isdisjoint(other.backends)


def _kinds(devices: Sequence[Device], node: Node, backend: str | None = None) -> list[list[Device]]:
    """Return the devices that can be members of a group of several, those that one process can use in one list.

    By ``backend``, else by each that some of them have in common; nobody is in a list that is part of another. RAM is
    one pool, however many devices use it, and of MIG instances a process sees only one.
    """
    found: dict[tuple[str, bool, str], list[Device]] = {}
    for device in devices:
        if device.pool.pool != node.ram.pool and not device.uuid.startswith("MIG-"):
            for word in (backend,) if backend else device.backends:
                found.setdefault((device.kind, device.measurable, word), []).append(device)
    if len(found) < 2:
        return list(found.values())
    by_size = sorted(found.values(), key=len, reverse=True)
    members = [frozenset(device.uuid for device in alike) for alike in by_size]
    return [one for n, one in enumerate(by_size) if not any(members[n] <= larger for larger in members[:n])]
