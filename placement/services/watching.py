"""The watchdog's hand: stop the job that grew past its charge when a pool runs out, or say that nobody of ours did."""

from __future__ import annotations

import logging

from placement import snapshots
from placement.domain.jobs import State
from placement.domain.knobs import Knobs
from placement.domain.watchdog import choose
from placement.models import Job, Node
from placement.services import lifecycle

log = logging.getLogger(__name__)
_quiet: set[str] = set()  # nodes on which nothing runs and whose note this process has taken away


def watch(node_name: str, jobs: list[Job], over: dict[int, int], knobs: Knobs) -> None:
    """Judge this node once. ``over`` counts, per job, samples in a row above its charge; it is brought up to date."""
    if not any(job.state == State.RUNNING for job in jobs):
        over.clear()
        if node_name not in _quiet:  # whatever is short, there is nobody to choose from and nobody to protect
            _note(node_name, "")
            _quiet.add(node_name)
        return
    _quiet.discard(node_name)
    node = snapshots.node_now(node_name)
    if node is None:
        return
    running = tuple(snapshots.running_of(job, 0.0, None) for job in jobs if job.state == State.RUNNING)
    _count(jobs, over)
    found = choose(node, running, knobs, over)
    _note(node_name, found.sentence[:300] if found else "")
    if found is None or found.job is None:
        return
    job = next(job for job in jobs if job.pk == found.job)
    if job.stop_requested_at is not None:
        return
    cap = job.charges.get(found.pool, {}).get("cap")
    figures = {name: getattr(found, name) for name in ("pool", "used", "granted", "free", "mark", "next_charge")}
    log.warning("#%s %s", job.pk, found.sentence, extra={"action": "watchdog_stop"})
    lifecycle.stop_for(job, "watchdog", found.sentence, {**figures, "cap": cap, "samples": over.get(job.pk, 0)})
    lifecycle.ask_now(job, knobs)


def _note(node_name: str, note: str) -> None:
    Node.objects.filter(name=node_name).exclude(watchdog_note=note).update(watchdog_note=note)


def _count(jobs: list[Job], over: dict[int, int]) -> None:
    alive = {job.pk for job in jobs}
    for gone in set(over) - alive:
        del over[gone]
    for job in jobs:
        above = any(
            used is not None and pool in job.charges and used > job.charges[pool]["granted"]
            for pool, used in job.used.items()
        )
        over[job.pk] = over.get(job.pk, 0) + 1 if above else 0
