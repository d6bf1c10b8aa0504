"""The only writers of readings, history and sediment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest
from django.utils import timezone

from calibration import clock
from calibration.domain import keys
from calibration.domain.inside import Inside, More
from calibration.domain.left_behind import Left
from calibration.domain.samples import Attribution, PoolSample, PoolState, Reading
from calibration.domain.sediment import Row
from calibration.models import (
    Known,
    OpenWindow,
    Pin,
    Point,
    PoolNow,
    PoolProcesses,
    Sediment,
    StoreVersion,
    params_digest,
)

STEPS = (1, 10, 300)  # seconds
Listed = tuple[tuple[Inside, ...], tuple[More, ...]]
"""The processes that are listed of a pool, and the sums of those that are not."""
_FIGURES = [
    "kind", "name", "model", "backend", "index", "simulated", "state", "message", "total", "free", "used", "reserved",
    "busy", "external", "external_who", "unexplained", "owners", "draining", "read_at", "epoch",
    "lost_since", "left", "files",
]  # fmt: skip


def store_reading(
    reading: Reading,
    attribution: Attribution,
    free: Mapping[str, int | None],
    draining: Collection[str],
    lost_since: Mapping[str, datetime],
    now: float,
    left: Mapping[str, Iterable[Left]] = MappingProxyType({}),
) -> None:
    """Write the newest figures of every pool of a node; ``free`` is the figure to decide on.

    ``draining`` are the pools to which memory of an owner that ended is still coming back; ``left`` is what did not.

    A pool without a good reading keeps its last figures with their age, under its new state.
    """
    rows = [
        PoolNow(
            node=reading.node,
            pool=pool.pool,
            kind=pool.kind,
            name=pool.name,
            model=pool.model[:100],
            backend=pool.backend,
            index=pool.index,
            simulated=pool.simulated,
            state=pool.state.value,
            message=pool.message[:300],
            total=pool.total,
            free=free.get(pool.pool, pool.free),
            used=pool.used,
            reserved=pool.reserved,
            busy=pool.busy,
            external=attribution.external.get(pool.pool),
            external_who=[list(who) for who in attribution.external_who.get(pool.pool, ())],
            unexplained=attribution.unexplained.get(pool.pool),
            owners={owner: by_pool.get(pool.pool) for owner, by_pool in attribution.owners.items()},
            draining=pool.pool in draining,
            read_at=_on_shared_clock(pool, reading, now),
            epoch=clock.epoch(),
            lost_since=lost_since.get(pool.pool),
            left=[[one.owner, one.bytes, one.until] for one in left.get(pool.pool, ())],
            files=pool.files,
        )
        for pool in reading.pools.values()
    ]
    PoolNow.objects.bulk_create(rows, update_conflicts=True, unique_fields=["node", "pool"], update_fields=_FIGURES)


def _on_shared_clock(pool: PoolSample, reading: Reading, now: float) -> float | None:
    if pool.read_at is None:
        return None
    return now - max(0.0, reading.at - pool.read_at)


def forget_pools(node: str, known: Iterable[str]) -> None:
    """Delete the newest figures of pools that are no longer declared on a node."""
    for rows in (PoolNow.objects, PoolProcesses.objects):
        rows.filter(node=node).exclude(pool__in=list(known)).delete()


def store_processes(node: str, lists: Mapping[str, Listed]) -> None:
    """Write which processes are inside the pools named; the others keep theirs."""
    rows = [
        PoolProcesses(
            node=node,
            pool=pool,
            rows=[[p.pid, p.owner, p.rule, p.user, p.name, p.amount] for p in listed],
            more=[[m.owner, m.count, m.amount] for m in more],
        )
        for pool, (listed, more) in lists.items()
    ]
    PoolProcesses.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["node", "pool"], update_fields=["rows", "more"]
    )


def add_points(points: Iterable[Point]) -> None:
    """Write points of the history; one already there stays as it is."""
    Point.objects.bulk_create(points, ignore_conflicts=True)


def points_of(
    reading: Reading,
    attribution: Attribution,
    step: int,
    at: int,
    ledger: Mapping[str, tuple[int | None, int | None]] = MappingProxyType({}),
) -> list[Point]:
    """Return one point per pool that has a good reading now (unknown pools leave a gap, never a zero).

    ``ledger`` has (booked, kept) bytes per pool.
    """
    return [
        Point(
            node=reading.node,
            pool=pool.pool,
            step=step,
            at=at,
            total=pool.total,
            used=pool.used,
            free=pool.free,
            owners={o: by_pool[pool.pool] for o, by_pool in attribution.owners.items() if by_pool.get(pool.pool)},
            booked=ledger.get(pool.pool, (None, None))[0],
            kept=ledger.get(pool.pool, (None, None))[1],
        )
        for pool in reading.pools.values()
        if pool.state is PoolState.OK and pool.used is not None
    ]


def keep(row: Row, owner: str, user: str, at: datetime, device_peaks: list[int]) -> Sediment:
    """Store a closed window as sediment, once per owner, and raise the store's version."""
    with transaction.atomic(savepoint=False):  # whoever calls it inside of theirs goes back as a whole
        kept, created = Sediment.objects.get_or_create(
            owner=owner,
            defaults={
                "workload": row.key.workload,
                "fingerprint": row.key.fingerprint,
                "params": row.key.params,
                "script": row.key.script,
                "workers": row.key.workers,
                "user": user,
                "completed": row.completed,
                "outcome": row.outcome,
                "peaks": dict(row.peaks),
                "device_peaks": device_peaks,
                "seconds_to_peak": dict(row.seconds_to_peak),
                "duration": row.duration,
                "samples": dict(row.samples),
                "longest_gap": row.longest_gap,
                "charge": dict(row.charge),
                "cap": dict(row.cap),
                "next_charge": dict(row.next_charge),
                "lower_bound_note": row.lower_bound_note[:300],
                "preallocated": row.preallocated,
                "by_kernel": row.by_kernel or None,
                "at": at,
            },
        )
        if created:
            _count(row, at)
            raise_version()
    return kept


def _count(row: Row, at: datetime) -> None:
    """Count a window that closed under its key."""
    key, failed = row.key, int(not row.completed and row.outcome != "cancelled")
    subject, digest = keys.subject(key.workload, key.script, key.params), params_digest(key.params)
    fields: dict[str, Any] = {"workload": key.workload, "script": key.script, "params": key.params, "last_at": at}
    # Two statements, whether it is new or not: an insert that gives way, and the count.
    Known.objects.bulk_create([Known(subject=subject, params_digest=digest, **fields)], ignore_conflicts=True)
    Known.objects.filter(subject=subject, params_digest=digest).update(
        runs=F("runs") + 1, failed=F("failed") + failed, last_at=Greatest(F("last_at"), at)
    )


def raise_version() -> None:
    """Say that sediment or pins changed."""
    if not StoreVersion.objects.filter(pk=1).update(version=F("version") + 1):
        StoreVersion.objects.get_or_create(pk=1, defaults={"version": 1})


def open_window(owner: str, key: Mapping[str, object]) -> None:
    """Begin to remember the window of an owner; a second call changes nothing."""
    OpenWindow.objects.get_or_create(owner=owner, defaults={"key": dict(key)})


def save_window(owner: str, body: Mapping[str, object], settled: Mapping[str, int]) -> None:
    """Keep the state of an open window, so that a restart goes on with its peaks."""
    OpenWindow.objects.filter(owner=owner).update(body=dict(body), settled=dict(settled))


def drop_window(owner: str) -> None:
    """Forget an open window; its row, if it made one, is sediment by now."""
    OpenWindow.objects.filter(owner=owner).delete()


def mark(
    sediment_id: int, who: str, at: datetime, *, forgotten: bool | None = None, atypical: bool | None = None
) -> None:
    """Forget a row or mark its run as not typical (or take that back); who and when stay beside it."""
    changes: dict[str, object] = {"marked_by": who, "marked_at": at}
    if forgotten is not None:
        changes["forgotten"] = forgotten
    if atypical is not None:
        changes["atypical"] = atypical
    with transaction.atomic():
        Sediment.objects.filter(pk=sediment_id).update(**changes)
        raise_version()


def forget_until(
    workload: str, params: str, until: datetime, who: str, at: datetime, most: int
) -> tuple[int, datetime | None]:
    """Forget rows of a key that ended at a time or before, the newest ``most`` of them.

    Return how many were forgotten, and the end of the oldest of them: from there the next step goes on.
    """
    old = Sediment.objects.filter(
        workload=workload, params_digest=params_digest(params), at__lte=until, forgotten=False
    )
    with transaction.atomic():
        found = list(old.order_by("-at").values_list("pk", "at")[:most])
        Sediment.objects.filter(pk__in=[pk for pk, _ in found]).update(forgotten=True, marked_by=who, marked_at=at)
        if found:
            raise_version()
    return len(found), found[-1][1] if found else None


def pin(workload: str, kind: str, amount: int | None, who: str, subject: str = "") -> None:
    """Set the number that stands for a workload, with a subject for that one alone; None takes it away."""
    with transaction.atomic():
        if amount is None:
            Pin.objects.filter(workload=workload, subject=subject, kind=kind).delete()
        else:
            fields = {"bytes": amount, "who": who, "at": timezone.now()}
            Pin.objects.update_or_create(workload=workload, subject=subject, kind=kind, defaults=fields)
        raise_version()
