"""Where a job could go, what it would need there, and the working table of one cycle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from calibration.domain.estimate import Basis, Estimate
from calibration.domain.resources import MIB, times
from placement.domain import reservations
from placement.domain.knobs import Knobs
from placement.domain.prerequisites import Holdings
from placement.domain.requests import Exclusive, Gpu, Request
from placement.domain.snapshot import Device, Hold, Node, Pool, Running, Snapshot, Waiting


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of one kind of pool. ``need`` None: nothing is known, cold-start rules charge it."""

    need: int | None
    margin: int
    basis: Basis
    at_least: int = 0  # proven by runs that died of memory; counts where there is no need


@dataclass(frozen=True, slots=True)
class Demand:
    """All that places depend on; equal demands get equal answers. ``vram`` None: no device wanted."""

    request: Request
    ram: Ask
    vram: Ask | None


@dataclass(frozen=True, slots=True)
class Place:
    """One node, and one of its devices or none. ``order`` is the stable order of places, no two alike."""

    node: Node
    device: Device | None
    label: str
    order: tuple[str, int, str]

    @property
    def uuid(self) -> str | None:
        """Return the device's UUID, None without a device."""
        return None if self.device is None else self.device.uuid


@dataclass(frozen=True, slots=True)
class Part:
    """One pool at one place. ``need`` None where it hangs on a room that nobody can tell.

    ``least`` is what has to be there for the job at all, ``at_most`` what the pool gives when it is alone. ``all``:
    takes what is left of its device, of which it is not known how much it needs; ``beside`` is its RAM in the same
    pool, which is part of ``least``.
    """

    ledger: reservations.Ledger
    need: int | None
    least: int
    margin: int
    basis: Basis
    cold: bool
    at_most: int | None
    all: bool = False
    beside: int = 0

    @property
    def pool(self) -> Pool:
        """Return the pool."""
        return self.ledger.pool


def demand_of(request: Request, estimate: Estimate) -> Demand:
    """Return the demand of a request that stands on this estimate; a kind without a number is cold."""

    def ask(kind: str) -> Ask:
        found = estimate.pools.get(kind)
        if found is None:
            return Ask(None, 0, Basis.COLD_START)
        if found.need is None:
            return Ask(None, 0, Basis.COLD_START, found.at_least or 0)
        return Ask(found.need, found.margin or 0, found.basis)

    return Demand(request, ask("ram"), None if request.gpu is Gpu.NONE else ask("vram"))


def in_force(hold: Hold | None, wall: float) -> bool:
    """Return whether a hold still stands at this second."""
    return hold is not None and (hold.until is None or wall < hold.until)


def at_most(ledger: reservations.Ledger, margin: int) -> int | None:
    """Return what the pool could give to a candidate alone there; None before anything is known of it."""
    pool, knobs = ledger.pool, ledger.knobs
    if pool.total is None or not ledger.measurable:
        return pool.declared or None if ledger.measurable else pool.declared
    alone = reservations.kept(pool, (), margin, knobs).kept
    return min(pool.declared, pool.total - (pool.reserved or 0) - alone)


def gives(part: Part) -> int | None:
    """Return the largest need of the same basis that the pool could serve alone: its margin grows with the need."""
    pool, most = part.pool, at_most(part.ledger, 0)
    if not part.need or pool.total is None or most is None:
        return part.at_most
    return max(0, min(most, (pool.total - (pool.reserved or 0)) * part.need // (part.need + part.margin)))


class Board:
    """The snapshot with what this cycle has started so far.

    ``memo`` keeps answers per node until a job starts there, each ledger its own until it changes, ``fixed`` those
    that no start changes.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.knobs: Knobs = snapshot.knobs
        self.many = len(snapshot.nodes) > 1
        self.nodes: Mapping[str, Node] = {n.name: n for n in snapshot.nodes}
        self.memo: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        self.fixed: defaultdict[str, dict[Any, Any]] = defaultdict(dict)
        self.holdings = Holdings(snapshot.running)
        self.version = 0
        self._places: dict[Request, tuple[Place, ...]] = {}
        self._held: dict[str, dict[str, list[reservations.Holder]]] = {}
        self._ledgers: defaultdict[str, dict[str, reservations.Ledger]] = defaultdict(dict)
        self._on_node: defaultdict[str, list[Running]] = defaultdict(list)
        self._alone: defaultdict[str, list[Running]] = defaultdict(list)
        self._on_device: defaultdict[tuple[str, str], list[Running]] = defaultdict(list)
        for r in snapshot.running:
            self._stands(r)

    def admit(self, started: Running) -> None:
        """Charge one more job, so that the next decision sees it."""
        node = started.node
        held, ledgers = self._holders(node), self._ledgers[node]
        for pool, charge in started.charges.items():
            holder = reservations.Holder(started.job, charge, started.margins.get(pool, 0))
            held.setdefault(pool, []).append(holder)
            if pool in ledgers:
                ledgers[pool] = ledgers[pool].plus(holder)
        self._stands(started)
        self.holdings.add(started)
        self.memo[node] = {}
        self.version += 1

    def _stands(self, r: Running) -> None:
        self._on_node[r.node].append(r)
        if r.exclusive is Exclusive.MACHINE:
            self._alone[r.node].append(r)
        if r.device is not None:
            self._on_device[r.node, r.device].append(r)

    def _holders(self, node: str) -> dict[str, list[reservations.Holder]]:
        """Return who holds some of each pool of a node, from one pass over its jobs."""
        if node not in self._held:
            found: dict[str, list[reservations.Holder]] = {}
            for r in self._on_node[node]:
                for pool, charge in r.charges.items():
                    holder = reservations.Holder(r.job, charge, r.margins.get(pool, 0))
                    found.setdefault(pool, []).append(holder)
            self._held[node] = found
        return self._held[node]

    def on_node(self, node: str) -> list[Running]:
        """Return the jobs of a node, those started in this cycle included."""
        return self._on_node[node]

    def alone_on(self, node: str) -> list[Running]:
        """Return the jobs that have the node alone."""
        return self._alone[node]

    def on_place(self, place: Place) -> list[Running]:
        """Return the jobs on the place's device; on its node where the place has no device."""
        if place.device is None:
            return self._on_node[place.node.name]
        return self._on_device.get((place.node.name, place.device.uuid), [])

    def ledger(self, pool: Pool, measurable: bool = True) -> reservations.Ledger:
        """Return the pool's two ledgers as they stand now."""
        ledgers = self._ledgers[pool.node]
        found = ledgers.get(pool.pool)
        if found is None:
            holders = tuple(self._holders(pool.node).get(pool.pool, ()))
            found = ledgers[pool.pool] = reservations.Ledger(pool, holders, self.knobs, measurable)
        return found

    def places(self, request: Request) -> tuple[Place, ...]:
        """Return every place that the request allows, in stable order; a node that is gone is none."""
        if request not in self._places:
            self._places[request] = tuple(sorted(self._find(request), key=lambda p: p.order))
        return self._places[request]

    def _find(self, request: Request) -> list[Place]:
        found = []
        for node in self.snapshot.nodes:
            if node.state == "gone" or request.node not in (None, node.name):
                continue
            if request.gpu is Gpu.NONE:
                found.append(Place(node, None, f"RAM of {node.name}", (node.name, -1, "")))
                continue
            for device in node.devices:
                if request.device in (None, device.uuid) and (request.among is None or device.uuid in request.among):
                    label = f"{device.pool.name} of {node.name}" if self.many else device.pool.name
                    found.append(Place(node, device, label, (node.name, device.index, device.uuid)))
        return found

    def parts(self, demand: Demand, place: Place) -> tuple[Part, ...]:
        """Return what the job would need of each pool there, the device's first, a shared pool once."""
        node, device, vram = place.node, place.device, demand.vram
        if device is None or vram is None:
            return (self._ram_part(demand.ram, node, 0),)
        ram = self._ram_part(demand.ram, node, 1)
        if device.pool.pool != node.ram.pool:
            return (self._device_part(vram, device, demand.request.exclusive), ram)
        return (self._one_pool(vram, device, ram),)

    def _one_pool(self, vram: Ask, device: Device, ram: Part) -> Part:
        """Return the part of unified memory, which is RAM and the device's at once."""
        ledger, most = ram.ledger, at_most(ram.ledger, max(ram.margin, vram.margin))
        if vram.need is None:  # all that is left, but there has to be enough for both
            for_device = _share(max(0, device.pool.declared - ram.least), self.knobs.cold_start_share)
            least = ram.least + max(for_device, vram.at_least)
            left = ledger.left(0)
            need = None if left is None else max(0, left)
            return Part(ledger, need, least, 0, vram.basis, True, most, all=True, beside=ram.least)
        both = None if ram.need is None else ram.need + vram.need
        margin, basis = max(ram.margin, vram.margin), min(ram.basis, vram.basis)
        return Part(ledger, both, ram.least + vram.need, margin, basis, ram.cold, most)

    def _device_part(self, ask: Ask, device: Device, exclusive: Exclusive) -> Part:
        ledger = self.ledger(device.pool, device.measurable)
        key = "device", ask.need, ask.margin, ask.basis.value, ask.at_least, exclusive is Exclusive.NO
        found: Part | None = ledger.answers.get(key)
        if found is None:
            found = ledger.answers[key] = self._of_device(ledger, ask, device, exclusive)
        return found

    def _of_device(self, ledger: reservations.Ledger, ask: Ask, device: Device, exclusive: Exclusive) -> Part:
        most = at_most(ledger, ask.margin)
        if ask.need is None:
            left = ledger.left(0)
            least = max(first_run_least(device, self.knobs), ask.at_least)
            return Part(ledger, None if left is None else max(0, left), least, 0, ask.basis, True, most, all=True)
        need = ask.need
        whole = min(device.pool.declared, device.pool.total or 0)
        if exclusive is not Exclusive.NO and most is not None and most < need <= whole:
            need = most  # alone on a card it may have the whole of it, less what is always kept
        return Part(ledger, need, need, ask.margin, ask.basis, False, most)

    def _ram_part(self, ask: Ask, node: Node, devices: int) -> Part:
        ledger = self.ledger(node.ram)
        key = "ram", ask.need, ask.margin, ask.basis.value, ask.at_least, devices
        found: Part | None = ledger.answers.get(key)
        if found is None:
            found = ledger.answers[key] = self._of_ram(ledger, ask, node, devices)
        return found

    def _of_ram(self, ledger: reservations.Ledger, ask: Ask, node: Node, devices: int) -> Part:
        most = at_most(ledger, ask.margin)
        if ask.need is not None:
            return Part(ledger, ask.need, ask.need, ask.margin, ask.basis, False, most)
        least = max(first_run_ram(node, self.knobs), ask.at_least)
        left = ledger.left(0)
        if left is None:
            return Part(ledger, None, least, 0, ask.basis, True, most)
        need = max(least, min(int(left * self.knobs.cold_ram_share), fair_ram(node, devices)))
        return Part(ledger, need, least, 0, ask.basis, True, most)


def first_run_least(device: Device, knobs: Knobs) -> int:
    """Return what a run of which nothing is known has to find on a device."""
    return _share(device.pool.declared, knobs.cold_start_share)


_share = lru_cache(maxsize=1024)(times)  # exact, and so worth remembering: the same for each cycle


def first_run_ram(node: Node, knobs: Knobs) -> int:
    """Return what a run of which nothing is known has to find in RAM."""
    total = node.ram.declared if node.ram.total is None else node.ram.total
    return min(knobs.cold_ram_min_mib * MIB, int(total * knobs.cold_ram_min_share))


def fair_ram(node: Node, devices: int) -> int:
    """Return the most RAM that a first run on so many devices is charged: its part, were all devices taken."""
    total = node.ram.declared if node.ram.total is None else node.ram.total
    return total * max(1, devices) // (len(node.devices) + 1)


def waiting_demand(waiting: Waiting) -> Demand:
    """Return the demand of a queued job."""
    return demand_of(waiting.request, waiting.estimate)
