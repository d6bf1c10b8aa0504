"""One place as bare figures: what is left there for whom, and whether anything but memory keeps everybody out."""

from __future__ import annotations

from typing import Any

from placement.domain.admission import checks
from placement.domain.admission.first_runs import fair_ram, first_run_least, first_run_ram
from placement.domain.admission.levels import Ask, Asked, Level
from placement.domain.admission.places import Board, Place
from placement.domain.world.requests import Exclusive
from placement.domain.world.snapshot import Node, Running

Needs = tuple[tuple[str, int, int], ...]  # pool, need, margin: the device's first


class Side:
    """One node: its RAM, and how many jobs are there."""

    __slots__ = ("alone", "jobs", "node", "ram", "shut")

    def __init__(self, board: Board, node: Node) -> None:
        self.node = node
        self.ram = Level(board.ledger(node.ram), first_run_ram(node, board.knobs))
        self.jobs = self.alone = 0
        for r in board.on_node(node.name):
            self.joined(r)
        read = checks.reading_of(board, node.ram, None)
        self.shut = not (read.ok and checks.pressure_of(board, node).ok)

    def joined(self, r: Running) -> None:
        """Count one more job."""
        self.jobs += 1
        self.alone += r.exclusive is Exclusive.MACHINE


class Spot:
    """One place: its levels, who is there, and whether anything but memory keeps everybody out."""

    __slots__ = ("alone", "cold", "device", "fair", "here", "left", "only", "part", "place", "shut", "side", "unified")

    def __init__(self, board: Board, place: Place, side: Side) -> None:
        self.place, self.side = place, side
        device = place.device
        self.only = device is not None and device.exclusive_only
        self.unified = device is not None and device.pool.pool == place.node.ram.pool
        self.device: Level | None = None
        self.shut = side.shut or not all(check.ok for check in checks.standing_of(board, place))
        if device is not None and not self.unified:
            ledger = board.ledger(device.pool, device.measurable)
            self.device = Level(ledger, first_run_least(device, board.knobs))
            self.shut = self.shut or not checks.reading_of(board, device.pool, device).ok
        self.fair = fair_ram(place.node, 0 if device is None else 1)
        self.part = board.knobs.cold_ram_share
        self.here = self.alone = self.cold = 0
        self.left: list[int] = []  # the jobs among those that hold nothing of it, and use it
        if device is not None:
            for r in board.on_place(place):
                self.joined(r)

    def joined(self, r: Running) -> None:
        """Count one more job on the device."""
        self.here += 1
        if r.unheld:
            self.left.append(r.job)
        self.alone += r.exclusive is Exclusive.DEVICE
        self.cold += r.cold

    @property
    def most(self) -> int:
        """Return the most that its device has for anybody now, -1 without one."""
        return -1 if self.device is None else self.device.most_now

    @property
    def members(self) -> tuple[Spot, ...]:
        """Return the places of one device that this one consists of."""
        return (self,)

    def closed(self, wanted: Exclusive, inside: int = 0) -> bool:
        """Return whether an operator, the node's health or somebody's presence keeps such a job out.

        ``inside`` as in Request.
        """
        side = self.side
        if self.shut or side.alone or (side.jobs and wanted is Exclusive.MACHINE):
            return True
        if self.here == (inside in self.left):  # jobs on its device; nobody is counted where there is none
            return False
        return bool(self.only or self.alone or self.cold or wanted is Exclusive.DEVICE)

    def fits(self, ask: Ask, alone: bool) -> Needs | None:
        """Return what the job would be charged in each pool, None where one has no room; not of unified memory."""
        vram, vram_margin, vram_least = self.asked(ask)
        ram, ram_margin, ram_least = ask[1]
        device, side = self.device, self.side
        found: Needs = ()
        if device is not None:
            need = device.give(vram, vram_margin, vram_least, self.has_it(vram, alone))
            if need is None:
                return None
            found = ((device.pool, need, vram_margin),)
        if ram is None:
            need = side.ram.share(self.fair, self.part, ram_least)
        else:
            need = side.ram.give(ram, ram_margin, 0, False)
        return None if need is None else (*found, (side.ram.pool, need, ram_margin))

    def asked(self, ask: Ask) -> Asked:
        """Return what is asked of its device."""
        need, margin, least = ask[0]
        return (need if self.device is None or self.device.measurable else ask[2]), margin, least

    def has_it(self, need: int | None, alone: bool) -> bool:
        """Return whether the job has the device alone: one of which no need is known also by the declaration's word."""
        return alone or (need is None and self.only)

    def takes_all(self, ask: Ask) -> bool:
        """Return whether it would be a first run of what the place is taken for: its device, else its RAM."""
        if self.unified:
            return ask[0][0] is None or ask[1][0] is None
        if self.device is not None and not self.device.measurable:
            return False  # the whole of it, by what is declared
        return (ask[1] if self.device is None else ask[0])[0] is None

    def ever(self, ask: Ask, alone: bool) -> bool:
        """Return whether the place could serve if nothing else were there; not of unified memory."""
        vram, vram_margin, vram_least = self.asked(ask)
        ram, ram_margin, ram_least = ask[1]
        device = self.device
        if device is not None and not device.could(vram, vram_margin, vram_least, self.has_it(vram, alone)):
            return False
        least = max(self.side.ram.least, ram_least) if ram is None else ram
        return self.side.ram.holds(least, ram_margin)


class Several:
    """A place of several devices: open where each of them is; what fits there is asked of the board."""

    __slots__ = ("members", "place", "side")
    unified = False

    def __init__(self, place: Place, side: Side, members: tuple[Spot, ...]) -> None:
        self.place, self.side, self.members = place, side, members

    @property
    def shut(self) -> bool:
        """Return whether people or their health keep one of the devices shut."""
        return any(spot.shut for spot in self.members)

    @property
    def most(self) -> int:
        """Return the most that each of its devices has for anybody now."""
        return min(spot.most for spot in self.members)

    def closed(self, wanted: Exclusive, inside: int = 0) -> bool:
        """Return whether such a job is kept out of one of the devices."""
        return any(spot.closed(wanted, inside) for spot in self.members)

    def takes_all(self, ask: Ask) -> bool:
        """Return whether it would be a first run on its devices."""
        return self.members[0].takes_all(ask)


class Evenly:
    """One look at many sets of devices for a group whose members are all asked for the same: each is asked once."""

    __slots__ = ("_ask", "_inside", "_lowers", "_of_device", "_of_ram", "_wanted")

    def __init__(self, ask: Ask, wanted: Exclusive, lowers: bool, inside: int) -> None:
        self._ask, self._wanted, self._lowers, self._inside = ask, wanted, lowers, inside
        self._of_device: dict[str, int | None] = {}
        self._of_ram: dict[tuple[str, int], int | None] = {}

    def fits(self, place: Several) -> Needs | None:
        """Return what the group would be charged in each pool, None where one has no room or keeps it out."""
        margin, ram_margin = self._ask[0][1], self._ask[1][1]
        found = []
        for spot in place.members:
            device = spot.place.devices[0].uuid
            if device not in self._of_device:
                self._of_device[device] = self._give(spot)
            need = self._of_device[device]
            if need is None or spot.device is None:
                return None
            found.append((spot.device.pool, need, margin))
        key = place.place.node.name, len(found)
        if key not in self._of_ram:
            self._of_ram[key] = self._share(place, len(found))
        ram = self._of_ram[key]
        return None if ram is None else (*found, (place.side.ram.pool, ram, ram_margin))

    def _give(self, spot: Spot) -> int | None:
        need, margin, least = spot.asked(self._ask)
        return (
            None
            if spot.device is None or spot.closed(self._wanted, self._inside)
            else spot.device.give(need, margin, least, spot.has_it(need, self._lowers))
        )

    def _share(self, place: Several, devices: int) -> int | None:
        ram, margin, least = self._ask[1]
        if ram is not None:
            return place.side.ram.give(ram, margin, 0, False)
        return place.side.ram.share(fair_ram(place.place.node, devices), place.members[0].part, least)


def group_key(place: Several | Spot, needs: Needs, cold: bool, most_first: bool) -> tuple[Any, ...]:
    """Return what ``choosing.best_fit`` returns of a group whose members are all asked for the same, from figures."""
    members = []
    for spot, (_, need, margin) in zip(place.members, needs, strict=False):
        left = (spot.device or spot.side.ram).left(margin) or 0
        members.append((-left if cold else left - need, spot.place.devices[0].index))
    count = len(members)
    return -count if most_first else count, tuple(sorted(members)), place.place.order
