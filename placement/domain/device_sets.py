"""Which devices of a node a group may take together.

Of eight devices or fewer every set is a place of its own: at most 255. Of more, a set is a row of neighbours, by number
or by how much room they have when a cycle begins: shares of one size, given each to the device with the least left
over, always go to such a row by room. What a cycle has started since is seen by the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from placement.domain.requests import Gpu, Request
from placement.domain.snapshot import Device, Node

FEW = 8
_Order = Callable[[Device], tuple[int, ...]]


def device_sets(node: Node, request: Request, by_room: _Order) -> Iterator[tuple[Device, ...]]:
    """Yield each set that the request allows, its devices in the node's order.

    ``by_room`` sorts devices by the room that they have now, those last that nobody can join.
    """
    there = [device for device in node.devices if _asked_for(device, request)]
    if request.gpu is not Gpu.GROUP:
        yield from ((device,) for device in there)
        return
    kinds = _kinds(there, node)
    for count in counts(request, len(there)):
        if count == 1:
            yield from ((device,) for device in there)
            continue
        for alike in kinds:
            if len(alike) <= FEW:
                yield from combinations(alike, count)
                continue
            places = {device.uuid: place for place, device in enumerate(alike)}
            rows = [*_rows(alike, count), *_rows(sorted(alike, key=by_room), count)]
            ordered = [tuple(sorted(row, key=lambda d: places[d.uuid])) for row in rows]
            yield from {tuple(d.uuid for d in row): row for row in ordered}.values()


def _asked_for(device: Device, request: Request) -> bool:
    """Return whether a request allows a device: by its UUID, its kind, its backend and who runs it there."""
    if not device.for_container(request.engine) or (request.among is not None and device.uuid not in request.among):
        return False
    asked = ((request.device, device.uuid), (request.kind, device.kind), (request.backend, device.backend))
    return all(wanted in (None, has) for wanted, has in asked)


def most_together(node: Node, request: Request) -> int:
    """Return how many devices of a node one job may take at most, of those that its request allows."""
    there = [device for device in node.devices if _asked_for(device, request)]
    return max((len(alike) for alike in _kinds(there, node)), default=min(1, len(there)))


def together(one: Device, other: Device) -> bool:
    """Return whether one process can use both."""
    return (one.kind, one.backend) == (other.kind, other.backend)


def _kinds(devices: Sequence[Device], node: Node) -> list[list[Device]]:
    """Return the devices that can be members of a group of several, those that one process can use in one list.

    RAM is one pool, however many devices use it, and of MIG instances a process sees only one.
    """
    found: dict[tuple[str, str], list[Device]] = {}
    for device in devices:
        if device.pool.pool != node.ram.pool and not device.uuid.startswith("MIG-"):
            found.setdefault((device.kind, device.backend), []).append(device)
    return list(found.values())


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
    alike = next(kind for kind in _kinds(node.devices, node) if together(kind[0], devices[0]))
    several = [device.uuid for device in alike]
    first = several.index(devices[0].uuid)
    return len(several) <= FEW or [d.uuid for d in devices] == several[first : first + len(devices)]


def _rows(devices: Sequence[Device], count: int) -> Iterator[tuple[Device, ...]]:
    return (tuple(devices[first : first + count]) for first in range(len(devices) - count + 1))
