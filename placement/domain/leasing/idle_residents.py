"""Residents that nobody uses, and the devices as they would be without some of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from placement.domain.leasing.leases import Part
from placement.domain.leasing.slots import Slot, supports
from placement.domain.world.asks import Ask
from placement.domain.world.devices import DeviceKey


@dataclass(frozen=True, slots=True)
class Idle:
    """A resident that nobody uses. ``lease``: what it holds; residents may share one, and then go together.

    ``others``: somebody who is no idle resident holds the lease, too, so stopping the resident would free nothing.
    ``measured`` are its bytes by device as they are seen; None: those of its lease. Times are seconds; the smaller is
    the older.
    """

    id: int
    lease: int
    parts: tuple[Part, ...]
    used: float
    created: float = 0.0
    others: bool = False
    measured: Mapping[DeviceKey, int] | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """Residents that share one lease."""

    members: tuple[Idle, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.members[0].parts

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)

    @property
    def ages(self) -> tuple[tuple[float, float, int], ...]:
        return tuple(age_of(one) for one in self.members)

    @property
    def weighs(self) -> int:
        return len(self.members)

    @property
    def footprint(self) -> object:
        """Return what is equal for those of which only the least recently used need be looked at first."""
        seen = tuple(tuple(sorted((one.measured or {}).items())) if one.measured else None for one in self.members)
        return self.parts, seen


def units_of(ask: Ask, slots: Sequence[Slot], residents: Iterable[Idle], failed: frozenset[int]) -> tuple[Unit, ...]:
    """Return what can be freed where the ask could be served, the largest first and of the same the oldest."""
    useful = {slot.device for slot in slots if supports(ask, slot)}
    leases: dict[int, list[Idle]] = {}
    for one in residents:
        leases.setdefault(one.lease, []).append(one)
    units = [
        Unit(tuple(sorted(some, key=age_of)))
        for some in leases.values()
        if not any(one.others or one.id in failed for one in some)
        and any(part.device in useful for part in some[0].parts)
    ]
    return tuple(sorted(units, key=lambda unit: (-unit.bytes, unit.ages)))


def without(slots: Sequence[Slot], gone: Iterable[Idle]) -> tuple[Slot, ...]:
    """Return the devices as they are once these residents have gone; what they shared is freed once."""
    leases = {one.lease: one for one in gone}
    return tuple(_freed(slot, leases.values()) for slot in slots)


def age_of(one: Idle) -> tuple[float, float, int]:
    return one.used, one.created, one.id


def _freed(slot: Slot, gone: Iterable[Idle]) -> Slot:
    parts = [(one, part) for one in gone for part in one.parts if part.device == slot.device]
    if not parts:
        return slot
    return replace(
        slot,
        leased=slot.leased - sum(part.bytes for _, part in parts),
        leases=slot.leases - len(parts),
        alone=slot.alone and not any(part.alone for _, part in parts),
        measured=None if slot.measured is None else slot.measured + sum(seen_of(*pair) for pair in parts),
    )


def hoped(slot: Slot, left: Sequence[Unit], size: int) -> Slot:
    """Return a device without the ``size`` largest of these, in each of its ledgers by itself."""
    parts = [(unit, part) for unit in left for part in unit.parts if part.device == slot.device]
    if not parts:
        return slot
    leased = sorted((part.bytes for _, part in parts), reverse=True)[:size]
    seen = sorted((seen_of(unit.members[0], part) for unit, part in parts), reverse=True)[:size]
    return replace(
        slot,
        leased=slot.leased - sum(leased),
        leases=slot.leases - min(size, len(parts)),
        alone=slot.alone and not any(part.alone for _, part in parts),
        measured=None if slot.measured is None else slot.measured + sum(seen),
    )


def seen_of(one: Idle, part: Part) -> int:
    return part.bytes if one.measured is None else one.measured.get(part.device, 0)
