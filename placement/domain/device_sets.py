"""Which devices of a node a group may take together.

Of eight devices or fewer every set is a place of its own: at most 255. Of more, a set is a row of neighbours, by number
or by how much room they have when a cycle begins: shares of one size, given each to the device with the least left
over, always go to such a row by room. What a cycle has started since is seen by the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

from placement.domain.requests import Gpu, Request
from placement.domain.snapshot import Device, Node

FEW = 8
_Order = Callable[[Device], tuple[int, ...]]


def device_sets(node: Node, request: Request, by_room: _Order) -> Iterator[tuple[Device, ...]]:
    """Yield each set that the request allows, its devices in the node's order.

    ``by_room`` sorts devices by the room that they have now, those last that nobody can join.
    """
    there = [device for device in node.devices if allows(device, request)]
    if request.gpu is not Gpu.GROUP:
        yield from ((device,) for device in there)
        return
    kinds = _kinds(there, node, request.backend)
    for count in counts(request, len(there)):
        if count == 1:
            yield from ((device,) for device in there)
            continue
        found: dict[tuple[str, ...], tuple[Device, ...]] = {}  # two may have several backends in common
        for alike in kinds:
            if len(alike) <= FEW:
                sets: Iterable[tuple[Device, ...]] = combinations(alike, count)
            else:
                places = {device.uuid: place for place, device in enumerate(alike)}
                rows = [*_rows(alike, count), *_rows(sorted(alike, key=by_room), count)]
                sets = [tuple(sorted(row, key=lambda d: places[d.uuid])) for row in rows]
            if len(alike) <= FEW and len(kinds) == 1:
                yield from sets
            else:
                found |= {tuple(d.uuid for d in row): row for row in sets}
        yield from found.values()


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


def counts(request: Request, devices: int) -> Sequence[int]:
    """Return the numbers of devices to try on a node with so many, fewest first; of many only some between."""
    low, high = request.min_devices, min(request.max_devices, devices)
    if high - low < FEW:
        return range(low, high + 1)
    found = [low]
    while found[-1] * 2 < high:
        found.append(found[-1] * 2)
    return [*found, high]


def stays(node: Node, devices: Sequence[Device]) -> bool:
    """Return whether the set is a place in each cycle, whoever runs: only such a one is kept for a plan."""
    if len(devices) < 2:
        return True
    wanted = [device.uuid for device in devices]
    for alike in _kinds(node.devices, node):
        several = [device.uuid for device in alike]
        if len(several) <= FEW or not set(wanted) <= set(several):
            continue
        first = several.index(wanted[0])
        if wanted != several[first : first + len(wanted)]:
            return False
    return True


def _rows(devices: Sequence[Device], count: int) -> Iterator[tuple[Device, ...]]:
    return (tuple(devices[first : first + count]) for first in range(len(devices) - count + 1))
