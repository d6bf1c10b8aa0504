"""Whom to stop when memory runs out, or at its cap where its policy says so: the job furthest above, or nobody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from calibration.domain.resources import gib
from placement.domain.ending.watch_policy import Policy, in_force
from placement.domain.knobs import MIB, Knobs
from placement.domain.world import reservations, text
from placement.domain.world.snapshot import Charge, Node, Pool, Running

Figures = Mapping[tuple[int, str], Sequence[int]]
"""Per (job, pool id) the bytes of its last looks, the newest last; of RAM only what proportional sizes stand behind."""
TOLD = 3
"""So many of the last figures stand in the sentence and in the evidence."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A pool under its mark, or a job at its cap, and what follows. ``job`` None: nothing is stopped.

    Bytes. ``next_charge`` is what the next run of the stopped job has to be charged at least; ``samples`` are the
    last figures, the newest last.
    """

    job: int | None
    pool: str
    mark: int
    free: int | None
    sentence: str
    used: int | None = None
    granted: int | None = None
    cap: int | None = None
    next_charge: int | None = None
    samples: tuple[int, ...] = ()
    policy: Policy = Policy.RISK


def mark(pool: Pool, knobs: Knobs) -> int:
    """Return the free bytes under which the watchdog acts: VRAM the floor, RAM its own mark."""
    if pool.kind != "ram":
        return reservations.floor(pool, knobs)
    total = pool.declared if pool.total is None else pool.total
    most = knobs.watch_ram_max_mib * MIB
    return min(most, max(knobs.watch_ram_mib * MIB, int(total * knobs.watch_ram_share)))


def choose(node: Node, running: Iterable[Running], knobs: Knobs, figures: Figures | None = None) -> Stop | None:
    """Return whom to stop on a node, or that a pool is short and nobody is; None where there is nothing to say.

    Where a pool is under its mark whoever is furthest above its charge is stopped at once: others are at risk. A job
    whose policy is to be stopped at its cap is stopped when so many figures in a row are above it as the knob says.
    A pool in which somebody is to be stopped comes before one in which nobody is.
    """
    seen = figures or {}
    jobs = [(r, in_force(node.watch_policy, r.watch_policy, knobs.watch_policy)) for r in running]
    jobs = [(r, policy) for r, policy in jobs if r.node == node.name and not r.finishing]
    pools = [node.ram, *(d.pool for d in node.devices if d.pool.pool != node.ram.pool)]
    nobody: Stop | None = None
    for pool in pools:
        low = mark(pool, knobs)
        if pool.free is None or pool.free >= low or not _fresh(pool, knobs):
            continue
        above = [(r, policy, r.charges[pool.pool]) for r, policy in jobs if _above(r, pool, knobs)]
        may = [(r, charge) for r, policy, charge in above if policy is not Policy.WARN]
        if may:
            r, charge = max(may, key=_furthest)
            return _short(pool, low, r, charge, _last(seen, r, pool))
        nobody = nobody or _nobody(pool, low, [r.job for r, _, _ in above])
    return _at_the_cap(pools, [r for r, policy in jobs if policy is Policy.CAP], knobs, seen) or nobody


def near_its_cap(r: Running, policy: Policy, ram: Pool, knobs: Knobs) -> bool:
    """Return whether a job's RAM has to be looked at more often than once a second.

    Above the knob's share of its cap; where it is stopped only when RAM runs short, not while plenty is free.
    """
    charge = r.charges.get(ram.pool)
    if policy is Policy.WARN or charge is None or charge.cap is None or charge.used is None or ram.free is None:
        return False
    if policy is Policy.RISK and ram.free >= _PLENTY * mark(ram, knobs):
        return False
    return charge.used > charge.cap * knobs.watch_near_share


_PLENTY = 4  # times the mark: free RAM above which no job can take all of it between two looks of a second


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


def _last(seen: Figures, r: Running, pool: Pool) -> tuple[int, ...]:
    return tuple(seen.get((r.job, pool.pool), ()))[-TOLD:]


def _short(pool: Pool, low: int, r: Running, charge: Charge, samples: tuple[int, ...]) -> Stop:
    used, free = charge.used or 0, pool.free or 0
    cap = "" if charge.cap is None else f", cap {gib(charge.cap)}"
    over, granted = gib(used, charge.granted), gib(charge.granted, used)
    left, least = gib(free, low), gib(low, free)
    sentence = (
        f"Killed by the watchdog: used {over} of {granted} granted{cap}; {_series(samples)}"
        f"{left} was free {text.on(pool, False)}, below the mark of {least}."
    )
    return _stop(pool, low, r, charge, sentence, samples, Policy.RISK)


def _at_the_cap(pools: Iterable[Pool], jobs: Iterable[Running], knobs: Knobs, seen: Figures) -> Stop | None:
    found: list[tuple[Fraction, int, Running, Pool, Charge]] = []
    for r in jobs:
        for pool in pools:
            charge = r.charges.get(pool.pool)
            last = tuple(seen.get((r.job, pool.pool), ()))[-knobs.watch_samples :]
            if charge is None or charge.cap is None or len(last) < knobs.watch_samples or not _fresh(pool, knobs):
                continue
            if min(last) > charge.cap:
                found.append((Fraction(last[-1], max(1, charge.cap)), r.job, r, pool, charge))
    if not found:
        return None
    _, _, r, pool, charge = max(found, key=lambda one: one[:2])
    samples, cap = _last(seen, r, pool), charge.cap or 0
    used = samples[-1]
    sentence = (
        f"Killed by the watchdog: used {gib(used, cap)} of {gib(cap, used)}, its cap {text.on(pool, False)}; "
        f"{_series(samples)}its policy is to stop at the cap."
    )
    return _stop(pool, mark(pool, knobs), r, charge, sentence, samples, Policy.CAP)


def _stop(
    pool: Pool, low: int, r: Running, charge: Charge, sentence: str, samples: tuple[int, ...], policy: Policy
) -> Stop:
    used = samples[-1] if policy is Policy.CAP else charge.used or 0
    again = max(-(-used * 6 // 5), charge.granted + 512 * MIB)
    return Stop(
        r.job, pool.pool, low, pool.free, sentence, used, charge.granted, charge.cap, again, samples, policy
    )  # fmt: skip


def _series(samples: tuple[int, ...]) -> str:
    """Return the last figures as "12.2, 12.8, 13.1 GiB in its last looks; ", "" where there is one or none."""
    if len(samples) < 2:
        return ""
    told = [gib(amount) for amount in samples]
    unit = told[-1].rpartition(" ")[2]
    same = all(one.endswith(f" {unit}") for one in told)
    words = [one.removesuffix(f" {unit}") for one in told[:-1]] if same else told[:-1]
    return f"{', '.join([*words, told[-1]])} in its last looks; "


def _nobody(pool: Pool, low: int, warned: Sequence[int]) -> Stop:
    free = pool.free or 0
    left, least = gib(free, low), gib(low, free)
    short = f"{text.pool_name(pool, False)} has {left} free, below the mark of {least}, and "
    if warned:
        above = "is above its charge" if len(warned) == 1 else "are above their charges"
        sentence = f"{short}{text.jobs(warned)} {above}; the policy is to warn only. Nothing is stopped."
    else:
        who = text.outsiders(pool)
        sentence = f"{short}no job is above its charge{f': {who}' if who else ''}. Nothing is stopped."
    return Stop(None, pool.pool, low, free, sentence[0].upper() + sentence[1:])
