"""The product as a policy: its own plan(), estimates, charges, settling, caps and watchdog on the replay's clock.

The replay feeds it what the service would: a snapshot at a whole second, with what a sampler saw then. A run that died
of memory is submitted again at its old place. Where the product says that a job can never start beside what is always
kept free, its person does what the page offers: takes the device alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from bench.world.engine import World
from bench.world.runs import Job, Run
from bench.world.sediment import MIB, Lengths, Sediment, key_of
from bench.world.watched import WALL, Held, Watched
from calibration.domain.estimate import Basis, Estimate
from calibration.domain.knobs import Knobs as InstrumentKnobs
from calibration.domain.samples import RAM
from calibration.domain.sediment import Key
from placement.domain.admission.decision import Grant
from placement.domain.ending import watchdog
from placement.domain.knobs import Knobs
from placement.domain.planning.plan import plan
from placement.domain.world import reservations
from placement.domain.world.durations import changes_at
from placement.domain.world.requests import Exclusive, Gpu, Request
from placement.domain.world.snapshot import Device, KeptPlan, Node, Pool, Running, Snapshot, Waiting

NODE = "replay"
RAM_TOTAL = 1 << 50
"""Main memory is no subject here, so there is enough of it."""
ONE, ALONE = Request(Gpu.ONE), Request(Gpu.ONE, Exclusive.DEVICE)


class Product:
    """The product's own code behind the replay's policy interface."""

    name = "product"
    polls = False
    grace = 0.0

    def __init__(
        self,
        knobs: Knobs,
        instrument: InstrumentKnobs,
        *,
        per_process: bool = False,
        receipts: bool = True,
        doubt: Callable[[Job], float] = lambda job: 1.0,
    ) -> None:
        self.knobs, self.instrument, self.doubt = knobs, instrument, doubt
        self.learned = Sediment(instrument)
        self.per_process, self.receipts = per_process, receipts
        self.watched: dict[int, Watched] = {}
        self.plans: dict[int, KeptPlan] = {}
        self._asks: dict[int, tuple[Estimate, Request, Estimate]] = {}
        self.low_at = math.inf  # a device may be under the watchdog's mark at this second
        self.cycle_at = math.inf  # a plan's time has come, or a run has become one without an end

    # ------------------------------------------------------------------ what the world calls
    def due(self, world: World) -> float:
        """Return the next whole second with a charge to settle, a device to watch or a plan to look at."""
        found = min((one.look_at for one in self.watched.values()), default=math.inf)
        return min(found, self.low_at, self.cycle_at if world.queue else math.inf)

    def look(self, world: World) -> bool:
        """Settle charges, watch the devices; return whether the gate is to be asked."""
        t, changed = world.t, self.cycle_at <= world.t
        if changed:
            self.cycle_at = math.inf
        for one in list(self.watched.values()):
            if one.look_at <= t:
                changed |= one.settle(t, self.learned)
        if self.low_at <= t:
            changed |= self._watch(world)
        return changed

    def rises(self, world: World, run: Run) -> None:
        """Look at a settled run's new level, and at the device that it fills, with the next reading."""
        one = self.watched.get(run.job.row.id)
        if one is not None and one.look_at == math.inf:
            one.look_at = math.floor(world.t + 1e-6) + 1.0
        self._expect_low(world, run.devices[0])

    def ended(self, world: World, run: Run, how: str) -> None:
        """Learn from a run that is over."""
        one = self.watched.pop(run.job.row.id)
        row = one.over(world.t, how, self.receipts and run.shape.share is not None)
        if row is None:
            self.learned.tell(None, one.key, run.job.row.id)
        else:
            self.learned.keep(row, run.job.row.id)

    def gate(self, world: World) -> None:
        """Run one cycle."""
        snapshot = self.snapshot(world)
        made = plan(snapshot)
        jobs = {job.row.id: job for job in world.queue}
        bar = made.bar
        self.plans = {}
        if bar is not None:
            planned = bar.planned(snapshot.at)
            if planned.at is not None:
                self.plans[bar.job - 1] = KeptPlan(planned.node, planned.devices, planned.at)
        free = {device.uuid: device.pool.free or 0 for device in snapshot.nodes[0].devices}
        waiting = {one.job: one for one in snapshot.waiting}
        for job, grant in made.grants.items():
            self._start(world, jobs[job - 1], grant, waiting[job].estimate, free)
        self._next_cycle(world)

    # ------------------------------------------------------------------ the snapshot
    def snapshot(self, world: World) -> Snapshot:
        """Return what the service would read at this second."""
        running = tuple(self._running(world, one) for one in self.watched.values())
        waiting = tuple(self._waiting(world, job) for job in world.queue)
        return Snapshot(world.t, WALL + world.t, (self._node(world),), running, waiting, knobs=self.knobs)

    def _node(self, world: World) -> Node:
        used = sum(int(one.run.job.row.ram * MIB) for one in self.watched.values())
        ram = Pool(NODE, RAM, "ram", "RAM", RAM_TOTAL, RAM_TOTAL, RAM_TOTAL - used, used)
        devices = []
        for device in world.devices:
            total, held = int(device.capacity * MIB), int(device.measured(world.t) * MIB)
            pool = Pool(
                NODE, f"GPU-{device.index}", "vram", f"gpu{device.index}", total, total, max(0, total - held), held,
                external=int(device.others * MIB),
            )  # fmt: skip
            devices.append(Device(pool.pool, NODE, "card", device.index, pool))
        return Node(NODE, ram, tuple(devices))

    def _running(self, world: World, one: Watched) -> Running:
        run = one.run
        seen = world.t > run.start
        used = {one.uuid: int(run.usage(world.t) * MIB), RAM: int(run.job.row.ram * MIB)} if seen else {}
        lengths = self._lengths(run.job, one.key)
        return Running(
            job=run.job.row.id + 1,
            name=run.job.row.key,
            user=one.key.workload,
            node=NODE,
            charges={pool: held.charge(used.get(pool)) for pool, held in one.charges.items()},
            devices=(one.uuid,),
            basis=min(held.basis for held in one.charges.values()).word,
            cold=one.cold,
            exclusive=Exclusive.DEVICE if run.alone else Exclusive.NO,
            elapsed=world.t - run.start,
            learned=lengths.predicted,
            seen=lengths.seen,
            margins={pool: held.margin for pool, held in one.charges.items()},
            arrival=run.job.row.id + 1,
        )

    def _waiting(self, world: World, job: Job) -> Waiting:
        key = key_of(job.row)
        request, estimate = self._asked(world, self.learned.estimate(key, job.row.declared))
        lengths = self._lengths(job, key)
        return Waiting(
            job.row.id + 1,
            job.row.key,
            key.workload,
            job.row.id + 1,
            request,
            estimate,
            waited=world.t - job.row.arrival,
            learned=lengths.predicted,
            seen=lengths.seen,
            plan=self.plans.get(job.row.id),
            attempt=job.kills + 1,
        )

    def _asked(self, world: World, estimate: Estimate) -> tuple[Request, Estimate]:
        """Return the request that a person makes: who needs more than others may have takes a device alone."""
        known = self._asks.get(id(estimate))
        if known is not None:
            return known[1:]
        if len(self._asks) > 4096:
            self._asks.clear()
        asked = self._asks_for(world, estimate)
        self._asks[id(estimate)] = (estimate, *asked)  # while it is kept here, its id is nobody else's
        return asked

    def _asks_for(self, world: World, estimate: Estimate) -> tuple[Request, Estimate]:
        found = estimate.pools["vram"]
        least = found.at_least or 0 if found.need is None else found.need
        pool = self._card(world)
        most = pool.total or 0
        if least <= most - reservations.kept(pool, (), found.margin or 0, self.knobs).kept:
            return ONE, estimate
        cut = replace(found, need=None if found.need is None else min(found.need, most), at_least=None)
        return ALONE, replace(estimate, pools={**estimate.pools, "vram": cut})

    def _card(self, world: World) -> Pool:
        """Return an empty device's memory."""
        total = int(world.capacity * MIB)
        return Pool(NODE, "", "vram", "", total, total, total, 0)

    def _lengths(self, job: Job, key: Key) -> Lengths:
        return self.learned.lengths(key).times(self.doubt(job))

    # ------------------------------------------------------------------ starting and watching
    def _start(self, world: World, job: Job, grant: Grant, estimate: Estimate, free: dict[str, int]) -> None:
        if grant.device is None:
            raise AssertionError(f"job {job.row.id + 1} was to start without a device")
        device = world.devices[int(grant.device.removeprefix("GPU-"))]
        charges = {}
        for pool, amount in grant.charges.items():
            basis: Basis = estimate.pools["ram" if pool == RAM else "vram"].basis
            charges[pool] = Held(amount, amount, grant.caps.get(pool), grant.margins.get(pool, 0), basis)
        cap = grant.caps.get(grant.device)
        request, _ = self._asked(world, estimate)
        run = world.start(
            job,
            (device.index,),
            grant.charges[grant.device] / MIB,
            limit=math.inf if cap is None or cap >= int(device.capacity * MIB) else cap / MIB,
            alone=request is ALONE,
        )
        one = Watched(run, device, grant.device, key_of(job.row), charges, self.instrument)
        one.free_before, one.per_process = free[grant.device], self.per_process
        total = int(device.capacity * MIB)
        one.most = {"vram": total - reservations.floor_of("vram", total, self.knobs)}
        one.look_at = run.start + min(self.instrument.settle_seconds, self.instrument.unproven_settle_seconds)
        self.watched[job.row.id] = one
        self._expect_low(world, device.index)

    def _next_cycle(self, world: World) -> None:
        """Note when time alone changes an answer: a run is expected to last longer than before, a plan is due."""
        found = math.inf
        for one in self.watched.values():
            lengths = self._lengths(one.run.job, one.key)
            elapsed = world.t - one.run.start
            then = changes_at(elapsed, None, lengths.predicted, self.knobs, lengths.seen)
            found = min(found, max(world.t + 1, math.floor(one.run.start + then) + 1.0))
        for kept in self.plans.values():
            if kept.at > world.t:
                found = min(found, math.ceil(kept.at))
        self.cycle_at = found

    def _expect_low(self, world: World, index: int) -> None:
        """Note the first whole second at which a device that fills up is under the watchdog's mark."""
        device = world.devices[index]
        mark = watchdog.mark(self._card(world), self.knobs) / MIB
        pace = sum(run.pace for run in device.runs)
        room = device.capacity - mark - device.measured(world.t)
        if room < 0:
            self.low_at = min(self.low_at, math.floor(world.t + 1e-6) + 1.0)
        elif pace > 0:
            self.low_at = min(self.low_at, max(math.floor(world.t + 1e-6) + 1.0, math.ceil(world.t + room / pace)))

    def _watch(self, world: World) -> bool:
        """Let the watchdog choose at this second's readings; whoever it chooses is stopped."""
        self.low_at = math.inf
        node = self._node(world)
        running = tuple(self._running(world, one) for one in self.watched.values())
        found = watchdog.choose(node, running, self.knobs)
        stopped = found is not None and found.job is not None
        if found is not None and found.job is not None:
            world.stop(self.watched[found.job - 1].run, "watchdog")
        for device in world.devices:
            if any(run.rising for run in device.runs):
                self._expect_low(world, device.index)
        return stopped
