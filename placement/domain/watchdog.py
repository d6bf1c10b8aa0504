"""Whom to stop when memory runs out: the job furthest above what it was granted, or nobody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from calibration.domain.resources import gib
from placement.domain import reservations, text
from placement.domain.knobs import MIB, Knobs
from placement.domain.snapshot import Charge, Node, Pool, Running


@dataclass(frozen=True, slots=True)
class Stop:
    """A pool under its mark and what follows. ``job`` None: nobody is above its charge, so nothing is stopped.

    Bytes. ``next_charge`` is what the next run of the stopped job has to be charged at least.
    """

    job: int | None
    pool: str
    mark: int
    free: int
    sentence: str
    used: int | None = None
    granted: int | None = None
    cap: int | None = None
    next_charge: int | None = None


def mark(pool: Pool, knobs: Knobs) -> int:
    """Return the free bytes under which the watchdog acts: VRAM the floor, RAM its own mark."""
    if pool.kind != "ram":
        return reservations.floor(pool, knobs)
    total = pool.declared if pool.total is None else pool.total
    most = knobs.watch_ram_max_mib * MIB
    return min(most, max(knobs.watch_ram_mib * MIB, int(total * knobs.watch_ram_share)))


def choose(
    node: Node, running: Iterable[Running], knobs: Knobs, over_samples: Mapping[int, int] | None = None
) -> Stop | None:
    """Return whom to stop on a node, or that a pool is short and nobody is; None where no pool is under its mark.

    ``over_samples`` counts the readings in a row in which each job was above its charge; one that has fewer than
    the knob asks is left alone yet. A pool in which somebody is to be stopped comes before one in which nobody is.
    """
    jobs = [r for r in running if r.node == node.name and not r.finishing]
    nobody: Stop | None = None
    for pool in (node.ram, *(d.pool for d in node.devices if d.pool.pool != node.ram.pool)):
        low = mark(pool, knobs)
        if pool.free is None or pool.free >= low or not _fresh(pool, knobs):
            continue
        above = [(r, r.charges[pool.pool]) for r in jobs if _above(r, pool, knobs)]
        if over_samples is not None:
            above = [(r, c) for r, c in above if over_samples.get(r.job, 0) >= knobs.watch_samples]
        if above:
            return _stop(pool, low, max(above, key=_furthest))
        nobody = nobody or _nobody(pool, low)
    return nobody


def _fresh(pool: Pool, knobs: Knobs) -> bool:
    return pool.age is not None and 0 <= pool.age <= knobs.stale_seconds


def _above(r: Running, pool: Pool, knobs: Knobs) -> bool:
    """Return whether the job is more than its rung's margin, and more than a fixed amount, above its charge."""
    charge = r.charges.get(pool.pool)
    if charge is None or charge.used is None:
        return False
    over = charge.used - charge.granted
    return over > max(r.margins.get(pool.pool, 0), knobs.watch_over_mib * MIB)


def _furthest(pair: tuple[Running, Charge]) -> tuple[Fraction, int, int]:
    r, charge = pair
    used = charge.used or 0
    over = used - charge.granted
    return Fraction(over, max(1, charge.granted)), over, r.job


def _stop(pool: Pool, low: int, pair: tuple[Running, Charge]) -> Stop:
    r, charge = pair
    used, free = charge.used or 0, pool.free or 0
    told = "" if charge.cap is None else f", cap {gib(charge.cap)}"
    over, granted = gib(used, charge.granted), gib(charge.granted, used)
    left, least = gib(free, low), gib(low, free)
    sentence = (
        f"watchdog: used {over}, granted {granted}{told}; "
        f"{left} was free {text.on(pool, False)}, below the mark of {least}."
    )
    again = max(-(-used * 6 // 5), charge.granted + 512 * MIB)
    return Stop(r.job, pool.pool, low, free, sentence, used, charge.granted, charge.cap, again)


def _nobody(pool: Pool, low: int) -> Stop:
    free = pool.free or 0
    left, least = gib(free, low), gib(low, free)
    who = text.outsiders(pool)
    told = f": {who}" if who else ""
    sentence = (
        f"{text.pool_name(pool, False)} has {left} free, below the mark of {least}, and no job is above its "
        f"charge{told}. Nothing is stopped."
    )
    return Stop(None, pool.pool, low, free, sentence[0].upper() + sentence[1:])
