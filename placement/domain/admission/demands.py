"""What a job asks of each kind of pool, and what that comes to in one pool at one place. Bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from calibration.domain.estimate import Basis, Estimate, Rung
from placement.domain.world import reservations
from placement.domain.world.requests import Gpu, Request
from placement.domain.world.snapshot import Pool, Waiting


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of one kind of pool. ``need`` None: nothing is known, cold-start rules charge it.

    ``booked`` is the need on devices that nobody measures, None where it has to be said or the device taken alone.
    """

    need: int | None
    margin: int
    basis: Basis
    at_least: int = 0  # proven by runs that died of memory; counts where there is no need
    exact: bool = False  # a promise, given whole or not at all
    booked: int | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """All that places depend on; equal demands get equal answers. ``vram`` None: no device wanted."""

    request: Request
    ram: Ask
    vram: Ask | None


@dataclass(frozen=True, slots=True)
class Part:
    """One pool at one place. ``need`` None where it hangs on a room that nobody can tell.

    ``least`` is what has to be there for the job at all, ``at_most`` what the pool gives when it is alone. ``all``:
    takes what is left of its device, of which it is not known how much it needs; ``beside`` is its RAM in the same
    pool, which is part of ``least``. ``unsaid``: nobody said how much, and the device has no readings to learn it from.
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
    unsaid: bool = False

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
            return Ask(None, 0, Basis.COLD_START, found.at_least or 0, booked=found.booked)
        exact = kind == "vram" and request.exact
        return Ask(found.need, found.margin or 0, found.basis, exact=exact, booked=found.booked)

    return Demand(request, ask("ram"), None if request.gpu is Gpu.NONE else ask("vram"))


def promised(request: Request, estimate: Estimate) -> Estimate:
    """Return the estimate with what is reserved exactly in place of what a device is expected to need."""
    found = estimate.pools.get("vram")
    if found is None or not request.exact:
        return estimate
    share, note = request.largest_share(request.min_devices), "reserved exactly: it is held until the end, used or not"
    own = Basis.DECLARED
    rungs = tuple(
        Rung(own, share, 0, "reserved exactly", counted=True) if rung.basis is own else replace(rung, counted=False)
        for rung in found.rungs
    )
    vram = replace(
        found, need=share, basis=Basis.DECLARED, margin=0, rungs=rungs, notes=(note,), at_least=None, promise=True
    )
    pools = {**estimate.pools, "vram": vram}
    needs = [pool.need for pool in pools.values()]
    known = sum(need for need in needs if need is not None)
    basis = min(pool.basis for pool in pools.values())
    return replace(estimate, pools=pools, basis=basis, need=None if None in needs else known, known=known)


def is_promise(estimate: Estimate, ram: bool) -> bool:
    """Return whether what is granted of a pool is a promise; of one for both kinds, where all of it is one.

    This is what marks a charge and its lease: settling, growth and pages read that mark and ask for nothing else.
    """
    kinds = [estimate.pools.get("ram"), estimate.pools.get("vram")] if ram else [estimate.pools.get("vram")]
    return all(found.promise for found in kinds if found is not None)


def over(part: Part) -> int:
    """Return the key of the pool to take: of all that serve the one with the least left over, by a first run the most.

    A pool of which nothing is known has nothing left.
    """
    left = part.ledger.left(part.margin) or 0
    return -left if part.cold else left - (part.need or 0)


def has_room(part: Part) -> bool:
    """Return whether the pool has room for the part now, and could give it at all."""
    left = part.ledger.left(part.margin)
    if part.need is None or left is None or part.need > left:
        return False
    if part.at_most is not None and part.least > part.at_most:
        return False
    return not part.all or (part.need >= part.least and not part.pool.draining)


def at_most(ledger: reservations.Ledger, margin: int) -> int | None:
    """Return what the pool could give to a candidate alone there; None before anything is known of it."""
    pool, knobs = ledger.pool, ledger.knobs
    if pool.total is None or not ledger.measurable:
        return pool.declared or None if ledger.measurable else pool.declared
    alone = reservations.kept(pool, (), margin, knobs).kept
    return min(pool.declared, pool.total - (pool.reserved or 0) - alone)


def unread(ledger: reservations.Ledger, ask: Ask, *, alone: bool) -> Part:
    """Return the part of a device that nobody measures: what it is booked with there, else the whole, if it is alone.

    Beside others it has no place there before somebody says how much.
    """
    whole, need = ledger.pool.declared, ask.booked
    if need is not None:
        basis = ask.basis if need == ask.need else Basis.DECLARED
        return Part(ledger, need, need, ask.margin, basis, False, whole)
    if not alone:
        return Part(ledger, None, whole, 0, ask.basis, False, -1, unsaid=True)
    return Part(ledger, whole, max(whole, ask.at_least), 0, Basis.DECLARED, False, whole)


def gives(part: Part) -> int | None:
    """Return the largest need of the same basis that the pool could serve alone: its margin grows with the need."""
    pool, most = part.pool, at_most(part.ledger, 0)
    if not part.need or pool.total is None or most is None:
        return part.at_most
    return max(0, min(most, (pool.total - (pool.reserved or 0)) * part.need // (part.need + part.margin)))


def waiting_demand(waiting: Waiting) -> Demand:
    """Return the demand of a queued job."""
    return demand_of(waiting.request, waiting.estimate)
