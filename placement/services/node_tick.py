"""Steps 1 to 5 of the loop on one node, and the watchdog: read, attribute, observe, reap, store."""

from __future__ import annotations

import fcntl
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from django.conf import settings
from django.db import DatabaseError, transaction
from django.utils import timezone

from calibration import clock
from calibration import services as instrument_store
from calibration.domain.attribution import attribute
from calibration.domain.samples import RAM, Attribution, Claim, Identity, PoolState, Reading
from calibration.probes.choose import Instrument
from placement import inside, snapshots
from placement.domain.jobs import ACTIVE, State
from placement.domain.knobs import Knobs
from placement.domain.world.pressure import limit_of, marks_of, under_pressure
from placement.models import Job, Node
from placement.services import (
    capping,
    containers,
    containing,
    cycle_pipe,
    cycle_row,
    delivering,
    draining,
    engines,
    flags,
    learning,
    leased,
    leaving,
    left_behind,
    lifecycle,
    machine,
    markers,
    nodes,
    notices,
    progress,
    strays,
    taking,
    watching,
)
from placement.services.history import History, Inhabitants, ledger

log = logging.getLogger(__name__)
_DISCOVER_EVERY = 10.0  # seconds


class Agent:
    """What one node's loop keeps between ticks; what must survive it is in the database or a run directory."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.instrument = Instrument(
            node, simulate=settings.SIMULATE, simulated_dir=settings.SIMULATED_DIR, expected=nodes.expected(node)
        )
        self.windows = learning.Windows()
        self.drains = draining.Drains()
        self.history = History()
        self.inhabitants = Inhabitants()
        self.markers = markers.Markers()
        self.progress = progress.Reader()
        self.courier = delivering.Courier()
        self.caps = capping.Caps()
        self.groups = containing.Groups()
        self.labels = containers.Labels()
        self.engines = engines.Engines()
        self.strays = strays.Strays()
        self.known: dict[str, frozenset[Identity]] = {}
        self.lost_since: dict[str, datetime] = {}
        self.leavings = left_behind.Leavings(node)
        self.tells_reserved = nodes.tells_reserved(node)
        self.watchdog = watching.Watchdog(lambda pids: self.instrument.needs(pids), lambda: self.instrument.ram())
        self.pools: set[str] = set()
        self.runners: dict[int, Identity] = {}
        self.discovered: tuple[tuple[object, ...], float] | None = None  # what was declared last, and when
        self.began = float("-inf")  # monotonic second at which the last tick began
        self._turn = threading.Lock()

    @contextmanager
    def turn(self) -> Iterator[bool]:
        """Give one tick at a time its turn, over all processes of this node; False where another has it."""
        if not self._turn.acquire(timeout=2):
            yield False
            return
        try:
            settings.DATA.mkdir(parents=True, exist_ok=True)
            with open(settings.DATA / f"tick-{self.node}.lock", "w") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    yield False
                    return
                yield True
        finally:
            self._turn.release()

    def glance(self) -> None:
        """Have the watchdog look at those near their caps; a tick that is under way does it better."""
        if self._turn.acquire(blocking=False):
            try:
                self.watchdog.glance()
            finally:
                self._turn.release()


def look(agent: Agent) -> list[lifecycle.Ended]:
    """Run steps 1 to 5 once and return the jobs that ended. The caller holds the agent's turn."""
    agent.began = time.monotonic()
    knobs, instrument_knobs = snapshots.knobs_now()
    jobs = _jobs(agent.node)
    version = learning.store_version()
    reading = agent.instrument.read(_owned(agent, jobs))  # 1 read
    agent.engines.look(jobs)
    agent.labels.know((engines.ident(job), learning.owner(job)) for job in jobs if job.image)
    marker_of, container_of = agent.markers.reader(reading), agent.labels.owner
    held = taking.theirs(jobs, reading, marker_of, container_of)
    above, claims = cycle_pipe.supervisor(), _claims(agent, jobs, held)
    found = attribute(reading, claims, marker_of=marker_of, container_of=container_of, service=above)  # 2 attribute
    agent.known = dict(found.members)
    agent.leavings.look(reading, found)
    agent.strays.look(jobs, reading, found)
    changed = inside.brought_up(jobs, {p.pool for p in reading.pools.values() if p.shares})
    changed += [
        job
        for job in jobs
        if job.state == State.RUNNING
        and agent.windows.observe(job, reading, found, instrument_knobs, version)  # 3 observe
        and job not in changed
    ]
    _save_observed(agent, jobs, changed, reading, found, knobs)
    _discover(agent, reading)
    totals = {pool.pool: pool.total for pool in reading.pools.values()}
    reserved = {pool.pool: pool.reserved for pool in reading.pools.values()}
    seen = (reading.wall, found)
    round_ = lifecycle.Round(agent.windows, reading.at, knobs, instrument_knobs, totals, reserved, seen, agent.strays)
    admitted = [job for job in jobs if job.state == State.ADMITTED]
    ended = lifecycle.reap(jobs, round_)  # 4 reap
    notices.started([job for job in admitted if job.state == State.RUNNING])
    for job in ended:
        agent.drains.begin(job.pools, reading.at + knobs.drain_max_seconds)
        containing.closed(job.job)
        engines.closed(job.job)
    over = {e.job.pk for e in ended}
    left = [job for job in jobs if job.pk not in over]
    agent.caps.forget(job.pk for job in left)
    agent.groups.forget(left)
    agent.engines.forget(left)
    agent.strays.forget(left)
    agent.groups.disputes(reading, found)
    agent.groups.reserve(reading.pools[RAM].total, knobs)
    _store(agent, left, reading, found, knobs)  # 5 store
    agent.runners = {job.pk: Identity(**job.runner) for job in left if job.runner}
    leaving.look(left)
    taking.look(left, knobs)
    agent.watchdog.look(agent.node, left, found.members, knobs)
    agent.progress.look(left)
    agent.courier.step()
    return ended


def _jobs(node: str) -> list[Job]:
    active = Job.objects.filter(node=node, state__in=ACTIVE).select_related("user", "workload").order_by("id")
    return list(active.defer("decision", "estimate", "environment", "workload__environment"))


def _owned(agent: Agent, jobs: list[Job]) -> set[int]:
    owned = {identity.pid for members in agent.known.values() for identity in members}
    return owned | {job.child["pid"] for job in jobs if job.child}


def _claims(agent: Agent, jobs: list[Job], held: Mapping[int, frozenset[Identity]] | None = None) -> list[Claim]:
    claims = []
    for job in jobs:
        owner = learning.owner(job)
        known = agent.known.get(owner)
        if known is None:
            known = frozenset(Identity(**member) for member in job.members)
        claims.append(
            Claim(
                owner=owner,
                supervisor=Identity(**job.runner) if job.runner else None,
                roots=(Identity(**job.child),) if job.child else (),
                marker=markers.of(job.run_dir or lifecycle.run_dir_of(job)),
                known=known | (held or {}).get(job.pk, frozenset()),
                **agent.groups.claim(job),
            )
        )
    return claims


def _discover(agent: Agent, reading: Reading) -> None:
    """Declare devices where the reading names others than before, and now and then in case a row was removed."""
    named = tuple((p.pool, p.name, p.index, p.total, p.state) for p in reading.pools.values() if p.kind != RAM)
    if agent.discovered is None or agent.discovered[0] != named or reading.at - agent.discovered[1] > _DISCOVER_EVERY:
        nodes.discover(agent.node, reading)
        gone = [pool.pool for pool in reading.pools.values() if pool.state is PoolState.GONE]
        if gone:
            agent.instrument.forget(nodes.retired(agent.node, gone))
        agent.instrument.one_pool = nodes.one_pool(agent.node)
        agent.tells_reserved = nodes.mark_reserved(reading, agent.tells_reserved)
        agent.discovered = (named, reading.at)


def _save_observed(
    agent: Agent, jobs: list[Job], changed: list[Job], reading: Reading, found: Attribution, knobs: Knobs
) -> None:
    policy = Node.objects.filter(name=agent.node).values_list("watch_policy", flat=True).first() or ""
    waits = inside.waits([job.pk for job in jobs], {p.pool: p.name for p in reading.pools.values()})
    for job in jobs:
        try:
            if _noted(agent, job, reading, found, knobs, policy, waits.get(job.pk, ())) and job not in changed:
                changed.append(job)
        except DatabaseError:
            raise
        except Exception:  # what one job left in its run directory must not stop the loop for all others
            log.exception("#%s cannot be looked at", job.pk, extra={"action": "look_failed"})
    if not changed:
        return
    Job.objects.bulk_update(changed, ["used", "charges", "members", "flags"], batch_size=200)
    leased.follow(changed)


def _noted(
    agent: Agent, job: Job, reading: Reading, found: Attribution, knobs: Knobs, policy: str, waits: Iterable[str]
) -> bool:
    """Put members, flags and what is in force into a job's row; return whether one of them changed.

    ``policy`` is the node's for the watchdog, ``waits`` are the words of what the job asks for while it runs.
    """
    members = [
        {"boot_id": i.boot_id, "pid": i.pid, "start_ticks": i.start_ticks}
        for i in sorted(found.members.get(learning.owner(job), frozenset()))
    ][:500]
    cached = found.cached.get(learning.owner(job), 0)
    told = [*waits, *flags.of(job, reading, knobs.watch_over_mib << 20, cached)]
    if outside := strays.running(agent.strays.held(job.pk)):
        told.append(outside)
    changed = (job.members, job.flags) != (members, told)
    job.members, job.flags = members, told
    changed |= agent.caps.refresh(job, reading, found.members.get(learning.owner(job), ()))
    held = (agent.engines if job.image else agent.groups).refresh(job, knobs, policy)
    return held or changed


def _store(agent: Agent, jobs: list[Job], reading: Reading, found: Attribution, knobs: Knobs) -> None:
    now = clock.now()
    for pool in reading.pools.values():
        if pool.state is PoolState.LOST:
            agent.lost_since.setdefault(pool.pool, timezone.now())
        else:
            agent.lost_since.pop(pool.pool, None)
    free = agent.drains.free(reading, knobs)
    points = agent.history.points(reading, found, ledger(jobs, reading, knobs))
    lists = agent.inhabitants.changed(reading, found, agent.strays.rules())
    # One transaction for all: a commit of its own costs more than what each of them writes.
    with cycle_row.in_line(), transaction.atomic():
        lost, draining_now, left = agent.lost_since, agent.drains.pools(), agent.leavings.told()
        instrument_store.store_reading(reading, found, free, draining_now, lost, now, left)
        if agent.pools != set(reading.pools):
            agent.pools = set(reading.pools)
            instrument_store.forget_pools(agent.node, agent.pools)
        instrument_store.add_points(points)
        instrument_store.store_processes(agent.node, lists)
        _store_node(agent, jobs, reading, now, knobs)
    agent.inhabitants.wrote(lists)


def _store_node(agent: Agent, jobs: list[Job], reading: Reading, now: float, knobs: Knobs) -> None:
    columns = ("pk", "ram_pressure", "ram_high", "ram_low", "ram_declared")
    row = Node.objects.filter(name=agent.node).values_list(*columns).first()
    if row is None:
        return
    pk, pressed, high, low, declared = row
    ram = reading.pools[RAM]
    marks = marks_of((high, low) if high and low else None, knobs)
    limit = limit_of(declared, ram.total)
    # The known part, where somebody's use is not known yet: without it a job that starts would end the pressure.
    mine = None if limit is None else sum(used for job in jobs if (used := job.used.get(RAM)) is not None)
    Node.objects.filter(pk=pk).update(
        tick_clock=now,
        epoch=clock.epoch(),
        boot_id=reading.boot_id,
        ram_pressure=under_pressure(pressed, ram.total, ram.free, *marks, limit=limit, used_of_limit=mine),
        disk_free=machine.disk_free(settings.RUNS),
        processes_free=machine.processes_free(len(reading.processes)),
        capacity_note=reading.capacity_note[:200],
        containment=containing.told(),
        containers=agent.engines.told,
        tick_ms=round((time.monotonic() - agent.began) * 1000, 1),
        notes=[*agent.engines.notes, *reading.notes][:20],
    )
