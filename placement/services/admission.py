"""The cycle: snapshot, plan, claim, in one transaction. Only here is anything granted."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError, OperationalError, connection, transaction
from django.utils import timezone

from calibration import clock
from calibration.domain.ladder import Basis
from calibration.domain.samples import RAM
from placement import present, snapshots
from placement.domain.admission.decision import Decision, Grant
from placement.domain.admission.demands import is_promise
from placement.domain.admission.wire import decision_json, estimate_json
from placement.domain.jobs import State
from placement.domain.planning.plan import Plan, plan
from placement.domain.world.snapshot import Snapshot, Waiting
from placement.models import Cycle, Job, Lease
from placement.services import accounts, cycle_pipe, cycle_row, explaining, granting, tying

log = logging.getLogger(__name__)
_TRIES = 3
newest: Plan | None = None  # of this process's last cycle, for forecasts; None when nobody waited in it


def run_if_due(*, wanted_only: bool = False, at_once: bool = False) -> bool:
    """Run a cycle if somebody wants one or the last began long enough ago; return whether one ran here.

    ``at_once``: what this node measures has just changed, so what the last cycle saw is no longer true.
    """
    if at_once:
        return run()
    knobs, _ = snapshots.knobs_now()
    row = Cycle.objects.filter(pk=1).first()
    if row is None:
        cycle_row.ensure()
        row = Cycle.objects.get(pk=1)
    age = clock.age(row.began_clock, row.epoch, clock.now())
    due = row.wanted > row.done or (not wanted_only and (age is None or age >= knobs.cycle_seconds))
    return run() if due else False


def run() -> bool:
    """Run one cycle, again on a fresh snapshot when the database asks for it; False when another holds it."""
    for attempt in range(_TRIES):
        try:
            return _once()
        except DatabaseError as error:
            if _is_busy(error):
                return False
            if attempt == _TRIES - 1 or not _may_retry(error):
                raise
            log.info("cycle again on a fresh snapshot: %s", error, extra={"action": "cycle_retry"})
    return False


def _once() -> bool:
    global newest
    made: Plan | None = None
    try:
        with cycle_row.in_line(), transaction.atomic():
            cycle = _lock()
            began = time.monotonic()
            cycle_pipe.begin()  # not before: who only waits for the lock holds up nobody
            at = clock.now()
            there = present.now()
            if there.queued or there.asks:
                if there.tied:
                    tying.end_never_met()
                made = plan(snapshots.take(no_account=_remembering(), there=there, cycle=cycle))
                _claim(made, asks=there.asks)
            else:
                explaining.forget_all_but(())  # nobody waits: there is nothing to decide on
            Cycle.objects.filter(pk=1).update(
                done=cycle.wanted,
                began_clock=at,
                epoch=clock.epoch(),
                owner=f"{os.uname().nodename}:{os.getpid()}",
                cost_ms=round((time.monotonic() - began) * 1000, 1),
            )
    finally:
        cycle_pipe.end()
    newest = made
    return True


def _remembering() -> Callable[[Any], str]:
    """Return who lacks an account, asked once per person and cycle."""
    said: dict[int, str] = {}

    def problem(user: Any) -> str:
        if user.pk not in said:
            said[user.pk] = accounts.problem(user)
        return said[user.pk]

    return problem


def _lock() -> Cycle:
    """Hold the cycle row until the end of the transaction; return it as it was when it was taken."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        return Cycle.objects.select_for_update(nowait=True).get(pk=1)
    return Cycle.objects.get(pk=1)  # SQLite: BEGIN IMMEDIATE holds the only write lock already


def _is_busy(error: DatabaseError) -> bool:
    return getattr(error.__cause__, "sqlstate", "") == "55P03" or (
        isinstance(error, OperationalError) and "locked" in str(error)
    )


def _may_retry(error: DatabaseError) -> bool:
    return getattr(error.__cause__, "sqlstate", "") in ("40001", "40P01")


def _claim(made: Plan, *, asks: bool) -> None:
    """Give each start its charge and leases; whatever else the plan says is explained where it is due.

    ``asks``: a running job waits for more.
    """
    snapshot = made.board.snapshot
    if made.starts:
        waiting = {w.job: w for w in made.queue}
        granting.granted(d for d in made.starts if waiting[d.job].inside)
        won = [d for d in made.starts if not waiting[d.job].inside and _admit(waiting[d.job], d, snapshot)]
        explaining.started(won)
    explaining.forget_all_but(w.job for w in made.waits())
    explaining.explain(made)
    if asks:
        granting.settle(made)


def _before(snapshot: Snapshot, node_name: str, pool: str) -> dict[str, int | None]:
    """Return what was free and unexplained in a device before the job came, for what is learned at its end."""
    for node in snapshot.nodes:
        for device in node.devices:
            if (node.name, device.uuid) == (node_name, pool):
                return {"free_before": device.pool.free, "unexplained_before": device.pool.unexplained}
    return {}


def _unread(snapshot: Snapshot, grant: Grant) -> frozenset[str]:
    """Return the granted devices that nobody measures."""
    there = next((node.devices for node in snapshot.nodes if node.name == grant.node), ())
    return frozenset(device.uuid for device in there if device.uuid in grant.devices and not device.measurable)


def _for_good(waiting: Waiting, booked: int) -> dict[str, Any]:
    """Return what a charge says of a device that nobody measures: booked so until the end, and not learned from."""
    need = waiting.estimate.pools["vram"]
    return {"unread": True, "settled": True, "basis": (need.basis if booked == need.need else Basis.DECLARED).word}


def _admit(waiting: Waiting, decision: Decision, snapshot: Snapshot) -> bool:
    """Claim one start; return whether the job was still there to be claimed."""
    grant, job = decision.grant, decision.job
    if grant is None:
        raise AssertionError(f"job {job} was to start without a grant")
    unread = _unread(snapshot, grant)
    charges = {
        pool: {
            "granted": amount,
            "held": amount,
            "at_start": amount,
            "cap": grant.caps.get(pool),
            "margin": grant.margins.get(pool, 0),
            "basis": waiting.estimate.pools["ram" if pool == RAM else "vram"].basis.word,
            "settled": False,
            "note": "",
            **({"promise": True} if is_promise(waiting.estimate, pool == RAM) else {}),
            **(_for_good(waiting, amount) if pool in unread else {}),
            **_before(snapshot, grant.node, pool),
        }
        for pool, amount in grant.charges.items()
    }
    won = Job.objects.filter(pk=job, state=State.QUEUED, attempt=waiting.attempt).update(
        state=State.ADMITTED,
        node=grant.node,
        device=grant.device or "",
        more_devices=",".join(grant.devices[1:]),
        basis=grant.basis,
        charges=charges,
        used={},
        estimate=estimate_json(waiting.estimate),
        decision=decision_json(decision),
        decided_at=timezone.now(),
        headline=decision.headline[:500],
        code="",
        plan={},
        admitted_at=timezone.now(),
        admitted_clock=snapshot.at,
        dispatched_clock=None,
    )
    if not won:
        return False
    Lease.objects.bulk_create(
        Lease(
            job_id=job,
            attempt=waiting.attempt,
            node=grant.node,
            pool=pool,
            kind="ram" if pool == RAM else "vram",
            bytes=amount,
            promise=is_promise(waiting.estimate, pool == RAM),
        )
        for pool, amount in grant.charges.items()
    )
    return True
