"""The watchdog's hand: stop the job that grew past its figures, or say that nobody of ours did.

Each tick judges its node once. Jobs whose RAM is near their cap are looked at again in between, by one short read for
each of their processes: a second is long for a job that takes gigabytes in one.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from calibration.domain.samples import RAM, Identity, PoolSample, PoolState
from placement import inside, snapshots
from placement.domain.ending.watch_policy import in_force
from placement.domain.ending.watchdog import TOLD, Stop, choose, near_its_cap
from placement.domain.jobs import State
from placement.domain.knobs import Knobs
from placement.domain.submitting.taken import Kind
from placement.domain.world.snapshot import Node as NodeSeen
from placement.domain.world.snapshot import Running
from placement.models import Job, Node
from placement.runner.identity import Identity as Process
from placement.runner.identity import alive
from placement.services import learning, lifecycle

log = logging.getLogger(__name__)
Needs = Callable[[Collection[int]], int | None]
_GLANCED = 256  # processes at most in one glance: a few milliseconds
_KEPT = 60  # figures kept of one job in one pool; as many as the knob can ask for


@dataclass(frozen=True, slots=True)
class Near:
    """A job near its cap, as the last look saw it."""

    running: Running
    processes: tuple[Process, ...]


class Watchdog:
    """What one node's watchdog keeps between looks."""

    def __init__(self, needs: Needs, ram: Callable[[], PoolSample]) -> None:
        self._needs, self._ram = needs, ram
        self._figures: dict[tuple[int, str], deque[int]] = {}
        self._seen: tuple[NodeSeen, Knobs] | None = None
        self._near: tuple[Near, ...] = ()
        self._quiet = False  # nothing runs, and the note is taken away

    def every(self) -> float | None:
        """Return the seconds between two glances, None while nobody is near its cap."""
        return self._seen[1].watch_near_seconds if self._near and self._seen else None

    def look(self, node_name: str, jobs: list[Job], members: Mapping[str, frozenset[Identity]], knobs: Knobs) -> None:
        """Judge this node once; ``members`` are the living processes of each owner."""
        running = [job for job in jobs if job.state == State.RUNNING]
        self._near, self._seen = (), None
        if not running:
            self._figures.clear()
            if not self._quiet:  # whatever is short, there is nobody to choose from and nobody to protect
                _note(node_name, "")
                self._quiet = True
            return
        self._quiet = False
        node = snapshots.node_now(node_name)
        if node is None:
            return
        running = [job for job in running if job.kind != Kind.HOLD]  # ending one would free nothing
        seen = [_running(job) for job in running]
        self._count(running, members)
        found = choose(node, seen, knobs, self._figures)
        _note(node_name, found.sentence[:300] if found else "")
        if found is not None and found.job is not None:
            _stop(next(job for job in running if job.pk == found.job), found, knobs)
        self._seen = (node, knobs)
        # A glance reads resident sizes alone: of one whose device shares main memory that is a part.
        owners = {job.pk: members.get(learning.owner(job), frozenset()) for job in running if not shares_ram(job)}
        self._near = _nearest(node, seen, owners, knobs, found.job if found else None)

    def glance(self) -> None:
        """Judge RAM once more for those who are near their cap. Asks the database only when somebody is stopped."""
        if self._seen is None or not self._near:
            return
        node, knobs = self._seen
        pool = self._ram()
        if pool.state is not PoolState.OK:
            return
        seen = []
        for near in self._near:
            used = self._needs([process.pid for process in near.processes if alive(process)])
            if used is None:
                self._figures.pop((near.running.job, RAM), None)
                continue
            self._add(near.running.job, RAM, used)
            seen.append(_with(near.running, used))
        now = replace(node, devices=(), ram=replace(node.ram, free=pool.free, used=pool.used, age=0.0))
        found = choose(now, seen, knobs, self._figures)
        if found is None or found.job is None:
            return
        self._near = tuple(near for near in self._near if near.running.job != found.job)
        job = Job.objects.select_related("user", "workload").filter(pk=found.job, state=State.RUNNING).first()
        if job is not None:
            _stop(job, found, knobs)

    def _count(self, jobs: Iterable[Job], members: Mapping[str, frozenset[Identity]]) -> None:
        """Keep the figures of this look; of RAM only what exact readings stand behind."""
        keys = {(job.pk, pool) for job in jobs for pool in job.charges}
        for gone in set(self._figures) - keys:
            del self._figures[gone]
        for job in jobs:
            for pool in job.charges:
                used = job.used.get(pool)
                if pool == RAM and used is not None and not shares_ram(job):
                    used = self._needs([one.pid for one in members.get(learning.owner(job), ())])
                if used is None:
                    self._figures.pop((job.pk, pool), None)  # what was not seen breaks the row
                else:
                    self._add(job.pk, pool, used)

    def _add(self, job: int, pool: str, used: int) -> None:
        self._figures.setdefault((job, pool), deque(maxlen=max(TOLD, _KEPT))).append(used)


def shares_ram(job: Job) -> bool:
    """Return whether a job's device memory is charged to main memory."""
    return bool(job.device) and snapshots.charged_pool(job) == RAM


def _running(job: Job) -> Running:
    policy = job.workload.watch_policy if job.workload else ""
    return replace(inside.whole(snapshots.running_of(job, 0.0, None), job), watch_policy=policy)


def _with(running: Running, used: int) -> Running:
    charge = running.charges[RAM]
    return replace(running, charges={RAM: replace(charge, used=used, held=max(charge.granted, used))})


def _nearest(
    node: NodeSeen,
    seen: Iterable[Running],
    members: Mapping[int, frozenset[Identity]],
    knobs: Knobs,
    stopped: int | None,
) -> tuple[Near, ...]:
    found: list[Near] = []
    left = _GLANCED
    for running in sorted(seen, key=_distance):
        policy = in_force(node.watch_policy, running.watch_policy, knobs.watch_policy)
        if running.job == stopped or running.finishing or not near_its_cap(running, policy, node.ram, knobs):
            continue
        known = members.get(running.job)
        if not known or len(known) > left:
            continue
        left -= len(known)
        found.append(Near(running, tuple(Process(i.pid, i.start_ticks, i.boot_id) for i in known)))
    return tuple(found)


def _distance(running: Running) -> int:
    charge = running.charges.get(RAM)
    return 0 if charge is None else (charge.cap or 0) - (charge.used or 0)


def _stop(job: Job, found: Stop, knobs: Knobs) -> None:
    if job.stop_requested_at is not None:
        return
    names = ("pool", "used", "granted", "cap", "free", "mark", "next_charge", "samples")
    figures = {name: getattr(found, name) for name in names}
    log.warning("#%s %s", job.pk, found.sentence, extra={"action": "watchdog_stop"})
    lifecycle.stop_for(
        job, "watchdog", found.sentence, {**figures, "samples": list(found.samples), "policy": found.policy.value}
    )
    lifecycle.ask_now(job, knobs)


def _note(node_name: str, note: str) -> None:
    Node.objects.filter(name=node_name).exclude(watchdog_note=note).update(watchdog_note=note)
