"""Where a job could go, what it would need there, and the working table of one cycle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from placement.domain.admission.demands import Ask, Demand, Part, at_most, over, unread
from placement.domain.admission.device_sets import FEW, device_sets, members
from placement.domain.admission.first_runs import fair_ram, first_run_least, first_run_ram, share
from placement.domain.admission.prerequisites import Holdings
from placement.domain.knobs import Knobs
from placement.domain.world import reservations
from placement.domain.world.requests import Exclusive, Gpu, Request, by_room
from placement.domain.world.snapshot import Device, Hold, Node, Pool, Running, Snapshot


@dataclass(frozen=True, slots=True)
class Place:
    """One node, and none, one or several of its devices. ``order`` is the stable order of places, no two alike.

    ``devices`` stand in their node's order.
    """

    node: Node
    devices: tuple[Device, ...]
    label: str
    order: tuple[str, int, str]

    @property
    def device(self) -> Device | None:
        """Return the first device, None without one."""
        return self.devices[0] if self.devices else None

    @property
    def uuids(self) -> tuple[str, ...]:
        """Return the devices' UUIDs."""
        return tuple(device.uuid for device in self.devices)


def in_force(hold: Hold | None, wall: float) -> bool:
    """Return whether a hold still stands at this second."""
    return hold is not None and (hold.until is None or wall < hold.until)


def name_of(device: Device, many: bool) -> str:
    """Return a device's name, with its node's where there are many."""
    return f"{device.shown} of {device.node}" if many else device.shown


def place_of(node: Node, devices: tuple[Device, ...], many: bool) -> Place:
    """Return the place of one device or several, in their node's order; ``many``: there are other nodes."""
    names = " + ".join(device.shown for device in devices)
    order = node.name, devices[0].index, "+".join(device.uuid for device in devices)
    return Place(node, devices, f"{names} of {node.name}" if many else names, order)


def _bare(request: Request) -> Request:
    """Return a request without what makes no difference to where it may go; those of many jobs are then one."""
    if not (request.exact or request.prefer_max):
        return request
    return replace(request, per_device_memory=None, group_memory=None, even=True, prefer_max=False)


class Board:
    """The snapshot with what this cycle has started so far.

    ``memo`` keeps answers per node until a job starts there, each ledger its own until it changes, ``fixed`` those
    that no start changes. ``aside`` are the devices of an older job's plan, which others do well to leave.
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
        self.aside: frozenset[str] = frozenset()
        self._places: dict[Request, tuple[Place, ...]] = {}
        self._alike: dict[Request, tuple[tuple[Node, tuple[Device, ...]], ...]] = {}
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
        for uuid in r.devices:
            self._on_device[r.node, uuid].append(r)

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
        """Return the jobs on the place's devices; on its node where the place has no device."""
        devices, name = place.devices, place.node.name
        if len(devices) == 1:
            return self._on_device.get((name, devices[0].uuid), [])
        if not devices:
            return self._on_node[name]
        there = {r.job: r for device in devices for r in self._on_device.get((name, device.uuid), ())}
        return list(there.values())

    def on_device(self, device: Device) -> list[Running]:
        """Return the jobs on a device."""
        return self._on_device.get((device.node, device.uuid), [])

    def ledger(self, pool: Pool, measurable: bool = True) -> reservations.Ledger:
        """Return the pool's two ledgers as they stand now."""
        ledgers = self._ledgers[pool.node]
        found = ledgers.get(pool.pool)
        if found is None:
            holders = tuple(self._holders(pool.node).get(pool.pool, ()))
            found = ledgers[pool.pool] = reservations.Ledger(pool, holders, self.knobs, measurable)
        return found

    def places(self, request: Request) -> tuple[Place, ...]:
        """Return the places that the request allows, in stable order; a node that is gone is none.

        Of more than eight devices alike, sets are chosen for each demand beside these: many_devices.all_places.
        """
        known = self._places.get(request)
        if known is None:
            bare = _bare(request)
            if bare not in self._places:
                self._places[bare] = tuple(sorted(self._find(bare), key=lambda p: p.order))
            known = self._places[request] = self._places[bare]
        return known

    def alike(self, request: Request) -> tuple[tuple[Node, tuple[Device, ...]], ...]:
        """Return the devices of each node of which a group of several may consist, those alike together."""
        known = self._alike.get(request)
        if known is None:
            bare = _bare(request)
            if bare not in self._alike:
                some = [(node, tuple(alike)) for node in self._allowed(bare) for alike in members(node, bare)]
                self._alike[bare] = tuple(some)
            known = self._alike[request] = self._alike[bare]
        return known

    def crowds(self, request: Request) -> tuple[tuple[Node, tuple[Device, ...]], ...]:
        """Return those of which sets are chosen for each demand: there are more than eight of them."""
        return tuple(one for one in self.alike(request) if len(one[1]) > FEW)

    def _allowed(self, request: Request) -> Iterator[Node]:
        for node in self.snapshot.nodes:
            if node.state != "gone" and request.node in (None, node.name) and node.runs(request.engine):
                yield node

    def _find(self, request: Request) -> list[Place]:
        found = []
        for node in self._allowed(request):
            if request.gpu is Gpu.NONE:
                found.append(Place(node, (), f"RAM of {node.name}", (node.name, -1, "")))
                continue
            found += [place_of(node, devices, self.many) for devices in device_sets(node, request)]
        return found

    def parts(self, demand: Demand, place: Place) -> tuple[Part, ...]:
        """Return what the job would need of each pool there: devices as granted, then RAM; no pool twice."""
        node, devices, vram = place.node, place.devices, demand.vram
        if not devices or vram is None:
            return (self._ram_part(demand.ram, node, 0),)
        ram = self._ram_part(demand.ram, node, len(devices))
        if len(devices) > 1:
            return (*self._members(demand.request, vram, devices), ram)
        device = devices[0]
        if device.pool.pool != node.ram.pool:
            return (self.device_part(vram, device, demand.request.exclusive), ram)
        return (self._one_pool(vram, device, ram),)

    def _members(self, request: Request, vram: Ask, devices: tuple[Device, ...]) -> list[Part]:
        """Return a group's parts in the order of the grant: the largest share first, to who has the least left over."""
        alone = request.exclusive
        if not request.even:
            return self._by_share(request, vram, devices)
        if request.group_memory is None:
            return sorted((self.device_part(vram, device, alone) for device in devices), key=over)
        lefts = [self.ledger(device.pool, device.measurable).left(vram.margin) or 0 for device in devices]
        rest = sorted(zip(lefts, devices, strict=True), key=lambda one: one[0])
        shares, found = request.shares(len(devices)), []
        asked = {amount: replace(vram, need=amount, booked=amount) for amount in set(shares)}
        for amount in shares:
            at = next((number for number, (left, _) in enumerate(rest) if left >= amount), -1)
            found.append(self.device_part(asked[amount], rest.pop(at)[1], alone))
        return found

    def _by_share(self, request: Request, vram: Ask, devices: tuple[Device, ...]) -> list[Part]:
        """Return a group's parts where its memory is divided by the room of each device, largest first.

        By the room that there is now, or by the most that each could give, where that is too little or one has none.
        """
        amount, own = request.group_memory or 0, request.per_device_memory or 0
        ledgers = [self.ledger(device.pool, device.measurable) for device in devices]
        now = [max(0, (ledger.left(0) or 0) - own) for ledger in ledgers]
        ever = [max(0, (at_most(ledger, 0) or 0) - own) for ledger in ledgers]
        shares = by_room(amount, now if sum(now) >= amount and min(now) > 0 else ever)
        parts = [
            self.device_part(replace(vram, need=share + own, booked=share + own), device, request.exclusive)
            for device, share in zip(devices, shares, strict=True)
        ]
        return sorted(parts, key=lambda part: -(part.need or 0))

    def _one_pool(self, vram: Ask, device: Device, ram: Part) -> Part:
        """Return the part of unified memory, which is RAM and the device's at once."""
        ledger, most = ram.ledger, at_most(ram.ledger, max(ram.margin, vram.margin))
        if vram.need is None:  # all that is left, but there has to be enough for both
            for_device = share(max(0, device.pool.declared - ram.least), self.knobs.cold_start_share)
            least = ram.least + max(for_device, vram.at_least)
            left = ledger.left(0)
            need = None if left is None else max(0, left)
            return Part(ledger, need, least, 0, vram.basis, True, most, all=True, beside=ram.least)
        both = None if ram.need is None else ram.need + vram.need
        margin, basis = max(ram.margin, vram.margin), min(ram.basis, vram.basis)
        return Part(ledger, both, ram.least + vram.need, margin, basis, ram.cold, most)

    def device_part(self, ask: Ask, device: Device, exclusive: Exclusive) -> Part:
        """Return what is asked of a device with memory of its own, remembered until the pool changes."""
        ledger = self.ledger(device.pool, device.measurable)
        alone = exclusive is not Exclusive.NO and not ask.exact
        key = "device", ask.need, ask.margin, ask.basis.value, ask.at_least, ask.booked, alone
        found: Part | None = ledger.answers.get(key)
        if found is None:
            found = ledger.answers[key] = self._of_device(ledger, ask, device, exclusive)
        return found

    def _of_device(self, ledger: reservations.Ledger, ask: Ask, device: Device, exclusive: Exclusive) -> Part:
        most = at_most(ledger, ask.margin)
        if not ledger.measurable:
            return unread(ledger, ask, alone=exclusive is not Exclusive.NO or device.exclusive_only)
        if ask.need is None:
            left = ledger.left(0)
            least = max(first_run_least(device, self.knobs), ask.at_least)
            return Part(ledger, None if left is None else max(0, left), least, 0, ask.basis, True, most, all=True)
        need = ask.need
        whole = min(device.pool.declared, device.pool.total or 0)
        if exclusive is not Exclusive.NO and not ask.exact and most is not None and most < need <= whole:
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
