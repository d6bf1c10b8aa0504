"""Control groups of this node's jobs, seen from the service: how they are made, how far they reach, when they go."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
from collections.abc import Iterable
from typing import Any

from django.conf import settings

from calibration.domain.attribution import SERVICE
from calibration.domain.samples import RAM, Attribution, Reading
from placement.domain.containing import containment as words
from placement.domain.ending.watch_policy import Policy, in_force
from placement.domain.knobs import Knobs
from placement.domain.world import reservations
from placement.models import Job, Node
from placement.runner import cgroup
from placement.runner.cgroup import Group
from placement.runner.containment import SERVED, WATCHED, Held, read_held, write_held
from placement.runner.ladder import Choice, Machine, choose
from placement.runner.scopes import ask, limit_slice, socket_of, spawn
from placement.runner.status import Phase, look
from placement.services import capping
from placement.services.capping import run_dir_of

log = logging.getLogger(__name__)
OFF = "off"
_RAISE_BY = 16 << 20  # bytes; a smaller rise is not worth a write


@functools.lru_cache(maxsize=4)
def here(wanted: str, settle: bool = True) -> Choice:
    """Return how this node keeps jobs, found by trying, once a process."""
    return choose(wanted, Machine(settle=settle))


def limits(kind: str) -> bool:
    """Return whether jobs of a node of this kind are kept in their main memory by the kernel."""
    return kind in words.WORDS


def told(settle: bool = True) -> dict[str, Any]:
    """Return what the node's row says: kind, sentence, and what was tried in vain.

    Without ``settle`` our own processes stay where they are: only a worker may move them.
    """
    if settings.RAM_LIMIT == OFF:
        return {
            "kind": OFF,
            "sentence": "watchdog only: control groups are switched off (TIDEGATE_RAM_LIMIT)",
            "tried": [],
        }
    found = here(settings.RAM_LIMIT, settle)
    sentence = words.of_node(found.plan.kind, bool(found.plan.base))
    return {"kind": found.plan.kind, "sentence": sentence, "tried": [list(one) for one in found.tried]}


def spec(job: Job, knobs: Knobs) -> dict[str, Any] | None:
    """Return what the runner is told about the group of a job, None where groups are switched off.

    A job that nobody would stop for its memory gets a group without a limit.
    """
    if settings.RAM_LIMIT == OFF:
        return None
    cap = job.charges.get(RAM, {}).get("cap")
    plan = here(settings.RAM_LIMIT).plan
    limit = None if plan.kind == WATCHED or job.image or warns_only(job, knobs) else cap
    return plan._replace(name=name_of(job), limit=limit)._asdict()


def limit_of_container(job: Job, knobs: Knobs) -> int | None:
    """Return the memory in bytes that the engine is to keep a job's container in, None for no limit."""
    if settings.RAM_LIMIT == OFF or warns_only(job, knobs):
        return None
    cap = job.charges.get(RAM, {}).get("cap")
    return cap if isinstance(cap, int) else None


def name_of(job: Job) -> str:
    """Return the name of a job's group: no other service on this machine and no other attempt has it."""
    site = hashlib.sha256(os.fsencode(os.path.realpath(settings.RUNS))).hexdigest()[:8]
    return f"tidegate-{site}-{job.pk}-{job.attempt}"


def warns_only(job: Job, knobs: Knobs, node: str | None = None) -> bool:
    """Return whether nobody stops a job for its memory; ``node``: its node's policy, None to look it up."""
    if node is None:
        node = Node.objects.filter(name=job.node).values_list("watch_policy", flat=True).first() or ""
    return in_force(node, job.workload.watch_policy if job.workload else "", knobs.watch_policy) is Policy.WARN


def launched(job: Job) -> None:
    """Put the driver's limit on the group of a job that was just launched, where there is such a driver."""
    held = read_held(run_dir_of(job))
    if held is not None and held.group.path and not job.image:  # a container's processes are in a group of its engine's
        capping.limit(job, held.group.path)


class Groups:
    """The groups of this node's running jobs; one loop keeps one."""

    def __init__(self) -> None:
        self._held: dict[tuple[int, int], Held] = {}
        self._disputed: set[tuple[int, int]] = set()
        self._reserved: int | None = None
        self._swept = False

    def of(self, job: Job) -> Held | None:
        """Return where a job is kept, None where it has no group or has not begun."""
        key = (job.pk, job.attempt)
        if key not in self._held:
            held = read_held(run_dir_of(job))
            if held is None:
                return None
            self._held[key] = held
        return self._held[key]

    def claim(self, job: Job) -> dict[str, Any]:
        """Return the part of a claim that the group gives: the end of its path, and what the kernel counts in it."""
        held = self.of(job)
        if held is None or not (held.group.path or held.group.memory):
            return {}
        parts = (held.group.path or held.group.memory).split("/")
        name = parts[-1] if parts[-1] != "job" else "/".join(parts[-2:])
        return {"group": name, "group_ram": cgroup.need(held.group) if held.group.memory else None}

    def refresh(self, job: Job, knobs: Knobs, node_policy: str) -> bool:
        """Have the limit follow the cap and the policy, and note what is in force; return whether the note changed.

        A limit is raised and lifted, never lowered: below what is used the kernel would kill at once.
        """
        charge, held = job.charges.get(RAM), self.of(job)
        if charge is None or not job.child:
            return False
        warns = warns_only(job, knobs, node_policy)
        cap = charge.get("cap")
        if held is not None and limits(held.kind) and (warns or cap is not None):
            held = self._follow(job, held, None if warns else cap)
        began = "its policy only warned when it began, and it holds too much to be limited now"
        limitable = held is not None and held.limit is None and limits(held.kind)
        force = words.of_job(
            held.limit if held else None,
            (held.why if held else "") or (began if limitable else ""),
            warns_only=warns and limitable,
            planned=settings.RAM_LIMIT != OFF and here(settings.RAM_LIMIT).plan.kind != WATCHED,
        )
        group = {"kind": held.kind, "path": held.group.path or held.group.memory} if held else {}
        now = words.fields(force, group)
        if charge.get("force") == now:
            return False
        job.charges = {**job.charges, RAM: {**charge, "force": now}}
        return True

    def _follow(self, job: Job, held: Held, wanted: int | None) -> Held:
        if wanted is not None:
            used = cgroup.need(held.group) if held.limit is None else held.limit
            if used is None or wanted < used + _RAISE_BY:
                return held
        elif held.limit is None:
            return held
        try:
            cgroup.set_limit(held.group, wanted)
            self._held[job.pk, job.attempt] = held._replace(limit=wanted)
            write_held(str(run_dir_of(job)), self._held[job.pk, job.attempt])
        except OSError as error:
            log.warning("#%s: its limit cannot be changed: %s", job.pk, error, extra={"action": "limit_refused"})
        return self._held[job.pk, job.attempt]

    def forget(self, kept: Iterable[Job]) -> None:
        """Drop what is known of all other jobs."""
        if not self._swept:
            self._swept = True
            sweep()
        keys = {(job.pk, job.attempt) for job in kept}
        self._held = {key: held for key, held in self._held.items() if key in keys}

    def disputes(self, reading: Reading, found: Attribution) -> None:
        """Log once a process whose group and whose parents name different owners; the group stands."""
        for pid, (by_group, by_parents) in found.disputes.items():
            process = reading.processes[pid]
            if (pid, process.start_ticks) not in self._disputed and SERVICE not in (by_group, by_parents):
                self._disputed.add((pid, process.start_ticks))
                log.warning(
                    "process %s (%s) is in the control group of %s and was started by %s; it counts as %s's",
                    pid, process.name, by_group, by_parents, by_group, extra={"action": "disputed"},
                )  # fmt: skip
        self._disputed = {key for key in self._disputed if key[0] in reading.processes}

    def reserve(self, total: int | None, knobs: Knobs) -> None:
        """Keep the machine's reserve out of all jobs' reach together, where the jobs have a slice of their own."""
        if total is None or settings.RAM_LIMIT == OFF:
            return
        plan = here(settings.RAM_LIMIT).plan
        limit = total - reservations.floor_of("ram", total, knobs)
        if plan.kind == WATCHED or limit == self._reserved:
            return
        self._reserved = limit
        said = _limit_slice(plan.scope, plan.memory or plan.base, 1 if plan.memory else 2, limit)
        if said:
            log.warning("the reserve of this machine is not kept by a group: %s", said, extra={"action": "no_reserve"})


def _limit_slice(scope: str, folder: str, version: int, limit: int) -> str:
    if scope == SERVED:
        return ask({"reserve": limit}, socket_of(os.geteuid()))
    if scope:
        return spawn(limit_slice(scope, limit))
    try:
        name = "memory.max" if version == 2 else "memory.limit_in_bytes"
        cgroup.write(os.path.join(folder, name), str(limit))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def closed(job: Job) -> None:
    """Take the driver's limit off and remove the group of a job that is over."""
    capping.unlimit(job)
    held = read_held(run_dir_of(job))
    if held is not None:
        cgroup.remove(held.group)


def sweep() -> int:
    """Remove groups that runs of this service left while nobody looked; return how many went."""
    if settings.RAM_LIMIT == OFF:
        return 0
    plan = here(settings.RAM_LIMIT).plan
    ours = name_of(Job(pk=0, attempt=0)).removesuffix("0-0")
    gone = 0
    for folder, version in ((plan.base, 2), (plan.memory, 1)):
        for name in os.listdir(folder) if folder and os.path.isdir(folder) else ():
            run_dir = settings.RUNS / name.removeprefix(ours)
            if name.startswith(ours) and (not run_dir.exists() or look(run_dir).phase in (Phase.EXITED, Phase.LOST)):
                path = os.path.join(folder, name)
                gone += cgroup.remove(Group(path, "", 2) if version == 2 else Group("", path, 1))
    return gone
