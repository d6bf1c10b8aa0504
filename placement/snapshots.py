"""Take the snapshot that one cycle decides on: every table read once, ages by the database's clock."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.conf import settings

from calibration import clock
from calibration.domain.charge import held
from calibration.domain.errors import BadKnob
from calibration.domain.knobs import Knobs as InstrumentKnobs
from calibration.domain.samples import RAM
from calibration.models import PoolNow
from placement import conditions, estimates, inside, present
from placement.conditions import Facts
from placement.domain.jobs import ACTIVE
from placement.domain.knobs import KnobError, Knobs
from placement.domain.world.conditions import Conditions
from placement.domain.world.known_asks import Known, Pending
from placement.domain.world.requests import Exclusive
from placement.domain.world.snapshot import Charge, KeptPlan, Node, Running, Snapshot, Waiting
from placement.models import Cycle, Job, KnobOverride
from placement.models import Device as DeviceRow
from placement.models import Node as NodeRow
from placement.nodes import hold_of, node_of
from placement.present import Present
from placement.waiting import Entry, Queue

log = logging.getLogger(__name__)
_WAIT_STEP = 10.0  # seconds; what a wait is for, ageing, goes by hours
_OF_RUNNING = (
    "admitted_clock", "array_id", "basis", "charges", "device", "exclusive", "key_params", "key_workload", "kind",
    "leader_exit", "more_devices", "name", "node", "priority", "started_clock", "time_limit_s", "used",
    "user__username",
)  # fmt: skip
"""What ``running_of`` reads: of ninety columns the others cost more than all else; one left out here costs a query."""
_queue = Queue()


def knobs_now() -> tuple[Knobs, InstrumentKnobs]:
    """Return the knobs in force: defaults, then the settings' overrides, then what admins set."""
    values: dict[str, object] = dict(settings.KNOB_OVERRIDES)
    values.update(KnobOverride.objects.values_list("name", "value"))
    return _knobs(json.dumps(values, sort_keys=True))


@lru_cache(maxsize=8)
def _knobs(values: str) -> tuple[Knobs, InstrumentKnobs]:
    """Return both tables with these values in place; one that is wrong is named in the log and left at its default.

    They come as JSON text: a row can hold a list, which no cache takes, and 1 is not true.
    """
    ours, theirs = Knobs(), InstrumentKnobs.defaults()
    given = json.loads(values)
    # Two that bound one another hold together, whichever comes first.
    good = {name: given[name] for name in ("ram_high", "ram_low") if name in given}
    try:
        ours = Knobs.with_overrides(good)
    except KnobError:
        good = {}
    for name, value in given.items():
        try:
            if name in Knobs.__dataclass_fields__:
                ours = Knobs.with_overrides({**good, name: value})
                good[name] = value
            if name in InstrumentKnobs.__dataclass_fields__:
                theirs = theirs.replace(**{name: value})  # type: ignore[arg-type]  # replace() checks the type
        except (KnobError, BadKnob) as error:
            log.error("a knob is not in force: %s", error, extra={"action": "bad_knob"})
    return ours, theirs


def nobody_lacks(user: Any) -> str:
    """Return "": the reader does not know accounts; services hand in who lacks one, and why."""
    return ""


def take(
    *,
    no_account: Callable[[Any], str] = nobody_lacks,
    without_jobs: bool = False,
    without_queue: bool = False,
    there: Present | None = None,
    cycle: Cycle | None = None,
) -> Snapshot:
    """Return everything the gate may look at, now. ``no_account`` says why a user's jobs have none to run as.

    ``without_jobs``: the machines alone, which tell what could ever start; ``without_queue``: nobody who waits.
    ``there`` and ``cycle`` are read here unless the caller has read them in the same transaction.
    """
    knobs, instrument = knobs_now()
    at, wall, epoch = clock.now(), time.time(), clock.epoch()
    there = there or present.now()
    version = there.version
    cycle = cycle or Cycle.objects.filter(pk=1).first()
    pools = {(p.node, p.pool): p for p in PoolNow.objects.all()}
    devices: dict[int, list[DeviceRow]] = {}
    gone: dict[str, str] = {}
    # Of those declared no more only the few that an admin took away: a card that is cut anew leaves rows each time.
    for device in DeviceRow.objects.exclude(retired=True, by_hand=False).order_by(
        "node_id", "by_hand", "index", "uuid"
    ):
        if device.retired:
            gone[device.uuid] = device.name
        else:
            devices.setdefault(device.node_id, []).append(device)
    nodes = tuple(
        node_of(node, devices.get(node.pk, []), pools, at, epoch, wall, knobs)
        for node in NodeRow.objects.order_by("name")
    )
    active = Job.objects.filter(state__in=ACTIVE).select_related("user").only(*_OF_RUNNING).order_by("id")
    running = () if without_jobs else _running(list(active), at, there, instrument.bytes_of("context_allowance_mib"))
    waiting: tuple[Waiting, ...] = ()
    asked: tuple[Pending, ...] = ()
    if not (without_jobs or without_queue):
        entries = _queue.entries(
            conditions.in_sight(whole=not there.crowded).order_by("-priority", "id"),
            (version, instrument, epoch),
            lambda job: waiting_of(job, at, wall, epoch, version, instrument),
        )
        facts = conditions.facts([entry.job for entry in entries], knobs)
        waiting = _brought_up(entries, wall, no_account, facts)
        if there.asks:
            more, asked = inside.waiting(running, wall, knobs)
            waiting = (*waiting, *more)
        if asked:  # nothing that a job will ask for is in anybody's way before
            later = inside.later(entry.job for entry in entries)
            waiting = tuple(replace(w, later=later[n]) if n in later else w for n, w in enumerate(waiting))
    return Snapshot(
        at=at,
        wall=wall,
        nodes=nodes,
        running=running,
        waiting=waiting,
        queue_hold=hold_of(cycle, wall) if cycle else None,
        knobs=knobs,
        gone=gone,
        asked=asked,
    )


def _running(jobs: list[Job], at: float, there: Present, context: int) -> tuple[Running, ...]:
    used = {job.pk: job.used for job in jobs}
    lent = inside.leases() if there.lent else ()
    asking = inside.asking() if there.asks else ()
    runs = [running_of(job, at, there.version) for job in jobs]
    return tuple(inside.standing(runs, lent, used, asking, context))


def _brought_up(
    entries: list[Entry], wall: float, no_account: Callable[[Any], str], facts: Facts
) -> tuple[Waiting, ...]:
    """Return kept entries with what can change while a row does not."""
    lacks: dict[int, str] = {}
    for entry in entries:
        if entry.user_id not in lacks:
            lacks[entry.user_id] = no_account(entry.job.user)
        waits_for = None if entry.for_room_alone and facts.none_for(entry.user_id) else facts.of(entry.job)
        _now(entry, wall, lacks[entry.user_id], waits_for)
    return tuple(entry.waiting for entry in entries)


def _now(entry: Entry, wall: float, no_account: str, waits_for: Conditions | None) -> None:
    """Bring one entry up to date; a wait within ``_WAIT_STEP`` is the same."""
    kept, job = entry.waiting, entry.job
    waited = max(0.0, wall - entry.submitted)
    if 0 <= waited - kept.waited < _WAIT_STEP:
        waited = kept.waited
    hold = hold_of(job, wall) if job.held_by else None
    if (waited, hold, no_account, waits_for) != (kept.waited, kept.hold, kept.no_account, kept.conditions):
        entry.waiting = replace(kept, waited=waited, hold=hold, no_account=no_account, conditions=waits_for)


def node_now(name: str) -> Node | None:
    """Return one node as the gate sees it, None when it is not declared."""
    row = NodeRow.objects.filter(name=name).first()
    if row is None:
        return None
    knobs, _ = knobs_now()
    devices = list(DeviceRow.objects.filter(node=row, retired=False).order_by("by_hand", "index", "uuid"))
    pools = {(p.node, p.pool): p for p in PoolNow.objects.filter(node=name)}
    return node_of(row, devices, pools, clock.now(), clock.epoch(), time.time(), knobs)


def charged_pool(job: Job) -> str:
    """Return the pool that a job's device memory is charged to: its device's own, or RAM where they are one."""
    return RAM if job.device and job.charges and job.device not in job.charges else job.device


def running_of(job: Job, at: float, version: int | None) -> Running:
    """Return an admitted or running job as the gate sees it; without a store ``version`` no duration is looked up.

    What it asked for while it ran is not in it: ``inside.standing`` adds the leases of that.
    """
    charges = {
        pool: Charge(
            granted=c["granted"],
            held=held(c["granted"], job.used.get(pool)) if c.get("inside") else c["held"],
            used=job.used.get(pool),
            at_start=c["at_start"],
            settled=c.get("settled", False),
            promise=c.get("promise", False),
            cap=c.get("cap"),
        )
        for pool, c in job.charges.items()
        if c.get("basis") != inside.BASIS
    }
    device_charge = job.charges.get(charged_pool(job), {})
    return Running(
        job=job.pk,
        name=job.name,
        user=job.user.get_username(),
        node=job.node,
        charges=charges,
        devices=job.devices,
        basis=job.basis,
        cold=device_charge.get("basis") == "cold_start" and not device_charge.get("settled", False),
        exclusive=Exclusive(job.exclusive),
        elapsed=max(0.0, at - (job.started_clock or job.admitted_clock or at)),
        limit=job.time_limit_s,
        learned=None if version is None else estimates.learned_duration(job, version),
        seen=() if version is None else estimates.seen_durations(job, version),
        margins={pool: job.charges[pool].get("margin") or 0 for pool in charges},
        finishing=bool(job.leader_exit),
        arrival=job.pk,
        priority=job.priority,
        array=job.array_id or 0,
    )


def _devices(plan: dict[str, Any]) -> tuple[str, ...]:
    """Return the devices of a stored plan: all where they are several, else the one, else none."""
    return tuple(plan.get("devices") or filter(None, [plan.get("device")]))


def waiting_of(
    job: Job,
    at: float,
    wall: float,
    epoch: str,
    version: int,
    knobs: InstrumentKnobs,
    no_account: str = "",
    waits_for: Conditions | None = None,
    later: tuple[Known, ...] = (),
) -> Waiting:
    """Return a queued (or not yet stored) job as the gate sees it."""
    submitted = job.submitted_at or datetime.fromtimestamp(wall).astimezone()
    plan = job.plan or {}
    kept = KeptPlan(plan["node"], _devices(plan), plan["at"]) if plan.get("epoch") == epoch else None
    return Waiting(
        job=job.pk or 0,
        name=job.name,
        user=job.user.get_username(),
        arrival=job.pk or 2**62,
        request=job.request(),
        estimate=estimates.estimate_of(job, version, knobs),
        priority=job.priority,
        waited=max(0.0, wall - submitted.timestamp()),
        workers=job.workers,
        hold=hold_of(job, wall),
        no_account=no_account,
        limit=job.time_limit_s,
        learned=estimates.learned_duration(job, version),
        seen=estimates.seen_durations(job, version),
        plan=kept,
        attempt=job.attempt,
        conditions=waits_for,
        later=later,
    )
