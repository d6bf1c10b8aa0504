"""What is left of one pool: measured (free, less kept, less growth) and booked (declared, less leased)."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from placement.domain.knobs import MIB, Knobs
from placement.domain.world.snapshot import Charge, Device, Pool, Running, Snapshot


@dataclass(frozen=True, slots=True)
class Kept:
    """Bytes that nobody is given: the larger of floor and cushion, never their sum."""

    floor: int
    cushion: int
    kept: int


@dataclass(frozen=True, slots=True)
class Holder:
    """One running job's part in one pool. Bytes; ``used`` None is unknown."""

    job: int
    charge: Charge
    margin: int

    @property
    def used(self) -> int | None:
        """Return the measured bytes, None where nobody can tell."""
        return self.charge.used

    @property
    def growth(self) -> int:
        """Return the bytes that it is still expected to take."""
        return self.charge.growth


@dataclass(frozen=True, slots=True)
class Room:
    """The measured ledger. total - used - withheld - kept - growth = room; None where a term is unknown.

    ``withheld`` is neither free nor used: driver-held, or what an ended job has not given back yet.
    """

    total: int | None
    used: int | None
    withheld: int | None
    free: int | None
    kept: Kept
    growth: int
    room: int | None
    holders: tuple[tuple[int, int], ...]  # (job, growth), largest first, growth 0 left out


@dataclass(frozen=True, slots=True)
class Booked:
    """The booked ledger. declared - leased = room, which is negative where a declaration was lowered.

    ``unheld`` is the part of it that jobs are measured to use without holding any of the pool.
    """

    declared: int
    leased: int
    room: int
    holders: tuple[tuple[int, int], ...]  # (job, lease), largest first
    unheld: tuple[tuple[int, int], ...] = ()


def floor(pool: Pool, knobs: Knobs) -> int:
    """Return the bytes kept free whoever runs: a share of the machine's total, else of what is declared."""
    return floor_of(pool.kind, pool.declared if pool.total is None else pool.total, knobs)


def floor_of(kind: str, total: int, knobs: Knobs) -> int:
    """Return the bytes kept free of a pool of this kind ("ram", else a device's) and size."""
    if kind == "ram":
        return min(int(total * knobs.floor_ram_share), knobs.floor_ram_mib * MIB)
    return min(knobs.floor_vram_mib * MIB, int(total * knobs.floor_vram_share))


def kept(pool: Pool, margins: Iterable[int], candidate_margin: int, knobs: Knobs) -> Kept:
    """Return what is held back: the floor, or the largest margin (the candidate's included) if larger."""
    low = floor(pool, knobs)
    cushion = max((candidate_margin, *margins))
    return Kept(low, cushion, max(low, cushion))


def _largest_first(pairs: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted((p for p in pairs if p[1] > 0), key=lambda p: (-p[1], p[0])))


def _with(pairs: tuple[tuple[int, int], ...], job: int, amount: int) -> tuple[tuple[int, int], ...]:
    if amount <= 0:
        return pairs
    at = bisect(pairs, (-amount, job), key=lambda p: (-p[1], p[0]))
    return (*pairs[:at], (job, amount), *pairs[at:])


@dataclass(frozen=True)
class Ledger:
    """One pool with everybody who holds some of it. Not slotted: the sums are kept after the first use."""

    pool: Pool
    holders: tuple[Holder, ...]
    knobs: Knobs
    measurable: bool = True

    @cached_property
    def answers(self) -> dict[Any, Any]:
        """Return what others have worked out about the pool as it stands; a pool with one more holder starts anew."""
        return {}

    @cached_property
    def growth(self) -> int:
        """Return the bytes that all holders together are still expected to take."""
        return sum(h.growth for h in self.holders)

    @cached_property
    def leased(self) -> int:
        """Return the bytes of all leases: held charges."""
        return sum(h.charge.held for h in self.holders)

    @cached_property
    def free_less_growth(self) -> int | None:
        """Return measured free less growth, None where free is unknown."""
        return None if self.pool.free is None else self.pool.free - self.growth

    @cached_property
    def back(self) -> Kept:
        """Return what is kept whoever comes: the floor, or the largest margin of a holder."""
        return kept(self.pool, (h.margin for h in self.holders), 0, self.knobs)

    @cached_property
    def growing(self) -> tuple[tuple[int, int], ...]:
        """Return (job, growth) of those that still grow, largest first."""
        return _largest_first((h.job, h.growth) for h in self.holders)

    @cached_property
    def leases(self) -> tuple[tuple[int, int], ...]:
        """Return (job, lease), largest first."""
        return _largest_first((h.job, h.charge.held) for h in self.holders)

    @cached_property
    def unheld(self) -> tuple[tuple[int, int], ...]:
        """Return (job, bytes) of those that hold nothing here and use it, largest first."""
        return _largest_first(
            (h.job, h.charge.held) for h in self.holders if not (h.charge.granted or h.charge.promise)
        )

    def measured(self, margin: int) -> int | None:
        """Return the measured room for a candidate with this margin, None where free is unknown."""
        base = self.free_less_growth
        return None if base is None else base - max(self.back.kept, margin)

    @property
    def booked(self) -> int:
        """Return the booked room."""
        return self.pool.declared - self.leased

    def left(self, margin: int) -> int | None:
        """Return the smaller of both rooms; the booked one alone where nothing can ever be measured."""
        if not self.measurable:
            return self.booked
        room = self.measured(margin)
        return None if room is None else min(self.booked, room)

    def room(self, margin: int) -> Room:
        """Return the measured ledger with each of its terms."""
        p = self.pool
        unknown = p.total is None or p.used is None or p.free is None
        return Room(
            total=p.total,
            used=p.used,
            withheld=None if unknown else p.total - p.used - p.free,  # type: ignore[operator]
            free=p.free,
            kept=Kept(self.back.floor, max(self.back.cushion, margin), max(self.back.kept, margin)),
            growth=self.growth,
            room=self.measured(margin),
            holders=self.growing,
        )

    def plus(self, more: Holder) -> Ledger:
        """Return the pool with one more holder; sums are carried on, not made again."""
        grown = Ledger(self.pool, (*self.holders, more), self.knobs, self.measurable)
        back = self.back
        cushion = max(back.cushion, more.margin)
        grown.__dict__["growth"] = self.growth + more.growth
        grown.__dict__["leased"] = self.leased + more.charge.held
        if "growing" in self.__dict__:
            grown.__dict__["growing"] = _with(self.growing, more.job, more.growth)
        if "leases" in self.__dict__:
            grown.__dict__["leases"] = _with(self.leases, more.job, more.charge.held)
        grown.__dict__["unheld"] = self.unheld  # whoever starts is granted something
        grown.__dict__["back"] = Kept(back.floor, cushion, max(back.floor, cushion))
        return grown

    def booking(self) -> Booked:
        """Return the booked ledger with each of its terms."""
        return Booked(self.pool.declared, self.leased, self.booked, self.leases, self.unheld)


def ledger(pool: Pool, running: Iterable[Running], knobs: Knobs, measurable: bool = True) -> Ledger:
    """Return the pool with those of the running jobs that hold some of it."""
    holders = tuple(
        Holder(r.job, r.charges[pool.pool], r.margins.get(pool.pool, 0))
        for r in running
        if r.node == pool.node and pool.pool in r.charges
    )
    return Ledger(pool, holders, knobs, measurable)


def measurable(device: Device) -> bool:
    """Return whether some probe can read the device; where none can, the booked ledger decides alone."""
    return device.measurable


def growth_by_holder(snapshot: Snapshot, pool: Pool) -> Mapping[int, int]:
    """Return the growth of every job that holds some of the pool, zeros included."""
    return {h.job: h.growth for h in ledger(pool, snapshot.running, snapshot.knobs).holders}


def measured_room(snapshot: Snapshot, pool: Pool, candidate_margin: int = 0) -> Room:
    """Return what is really left of the pool for a candidate with this margin."""
    return ledger(pool, snapshot.running, snapshot.knobs).room(candidate_margin)


def booked_room(snapshot: Snapshot, pool: Pool) -> Booked:
    """Return what leases leave of the declared capacity."""
    return ledger(pool, snapshot.running, snapshot.knobs).booking()
