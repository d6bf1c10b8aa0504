"""The page of one pool: who holds it, what is measured and booked, who waits for it, what was done to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.urls import reverse
from django.utils import timezone

from calibration import clock
from calibration.domain.lineage import SERVICE
from calibration.domain.resources import gib
from calibration.domain.samples import RAM
from calibration.models import PoolNow
from placement import snapshots
from placement.domain.submitting.taken import Kind
from placement.inside import UNHELD
from placement.models import AuditEntry, Device, Job, Node
from placement.nodes import twice
from placement.selectors import devices, hardware, now_lists, tanks
from placement.selectors.asked import NO_DEVICE, Asked
from placement.selectors.rows import WaitingRow
from placement.selectors.tanks import Holder, Tank
from placement.selectors.wording import mapping, whole

WAITING_SHOWN = 8
EVENTS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another pool that one may want to look at."""

    name: str
    href: str
    here: bool


@dataclass(frozen=True, slots=True)
class Inmate:
    """A job that holds memory here. Figures as read; ``growth`` and ``cap`` "" where there is none."""

    job: int
    name: str
    tone: str
    owner: str
    used: str
    growth: str
    booked: str
    cap: str
    taken: datetime | None  # since when a person has it for themselves, None for a run
    ends: datetime | None
    exact: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Sum:
    """One ledger as a sum: its terms with their signs, and what is left."""

    terms: tuple[tuple[str, str], ...]
    left: str


@dataclass(frozen=True, slots=True)
class PoolPage:
    """All that changes on the page, rounded as shown."""

    tank: Tank
    inmates: tuple[Inmate, ...]
    others: tuple[tanks.Owner, ...]
    measured: Sum | None  # None: nothing measures it
    booked: Sum
    waiting: tuple[WaitingRow, ...]
    waiting_count: int
    facts: tuple[tuple[str, str], ...]


def siblings(node: str, pool: str) -> tuple[Sibling, ...]:
    """Return all pools by the names that the overview gives them, in its order."""
    found = []
    rows = devices.nodes()
    for row in rows:
        for one in hardware.placeable(row.devices.all()):
            found.append((row.name, one.uuid, one.name))
        found.append((row.name, RAM, f"RAM of {row.name}" if len(rows) > 1 else "RAM"))
    return tuple(Sibling(name, where(n, p), (n, p) == (node, pool)) for n, p, name in found)


def where(node: str, pool: str) -> str:
    """Return the address of a pool's page."""
    return reverse("device-page", args=[node, pool])


def page_of(row: Device | Node) -> str:
    """Return the address of the page on which something is declared."""
    return where(row.node.name, row.uuid) if isinstance(row, Device) else where(row.name, RAM)


def page(row: Device | Node, viewer: int, *, sees_commands: bool) -> PoolPage | None:
    """Return the page of a declared pool; None where it went since."""
    node, pool = (row.node.name, row.uuid) if isinstance(row, Device) else (row.name, RAM)
    jobs = devices.active_jobs()
    tank = next(
        (t for t in devices.all_tanks(jobs, sees_commands=sees_commands) if (t.node, t.pool) == (node, pool)), None
    )
    if tank is None:
        return None
    now = PoolNow.objects.filter(node=node, pool=pool).first()
    inside = tanks.holders(jobs, node, pool, now)
    asked = Asked(device=NO_DEVICE if pool == RAM else pool)
    waiting = now_lists.waiting(asked, viewer)
    measured: Sum | None
    if isinstance(row, Device) and (row.shares or row.one_pool):  # its sums are those of the pool that it shares
        of_ram = PoolNow.objects.filter(node=node, pool=RAM).first()
        measured, booked = _sums(row.node, of_ram, tanks.holders(jobs, node, RAM, of_ram))
    else:
        measured, booked = _sums(row, now, inside)
    if tank.alone is not None:
        measured, booked = (_alone(one, tank.alone) for one in (measured, booked))
    if tank.unread:
        measured = None
    return PoolPage(
        tank=tank,
        inmates=_inmates(inside, {job.pk: job for job in jobs}, pool, hardware.guesses(now)),
        others=tuple(owner for owner in tank.owners if not owner.href),
        measured=measured,
        booked=booked,
        waiting=waiting.rows[:WAITING_SHOWN],
        waiting_count=waiting.count,
        facts=_facts(row, now),
    )


def events(row: Device | Node) -> QuerySet[AuditEntry]:
    """Return what people did to it last, newest first."""
    subject = f"device {row.uuid}" if isinstance(row, Device) else f"node {row.name}"
    return AuditEntry.objects.filter(subject=subject).order_by("-id")[:EVENTS_SHOWN]


def _inmates(inside: list[Holder], jobs: dict[int, Job], pool: str, guesses: Mapping[str, int]) -> tuple[Inmate, ...]:
    found = []
    for h in inside:
        charge = mapping(mapping(jobs[h.job].charges).get(pool))
        cap = whole(charge.get("cap"))
        more = 0 if charge.get("unread") else max(0, h.held - (h.used or 0))
        found.append(
            Inmate(
                job=h.job,
                name=h.name,
                tone=tanks.tone(h.job),
                owner=jobs[h.job].user.get_username(),
                used=gib(h.used) if h.used is not None else _guessed(guesses.get(f"job:{h.job}")),
                growth=gib(more) if more >= 1 << 20 else "",
                booked=f"{gib(h.held)}{', holds nothing' if charge.get(UNHELD) else ''}" if charge else "in RAM",
                cap=gib(cap) if cap else "",
                **_taken(jobs[h.job]),
                exact=f"{h.used:,} bytes" if h.used is not None else "",
            )
        )
    return tuple(found)


def _guessed(amount: int | None) -> str:
    """Return what to write where the driver names a process and not its size."""
    return "not measured" if amount is None else f"about {gib(amount)} (a guess: sizes are not told)"


def _taken(job: Job) -> dict[str, datetime | None]:
    """Return since when and until when a person has what they took; nothing of either for a run."""
    since = job.started_at if job.kind == Kind.HOLD else None
    seconds = job.time_limit_s
    return {"taken": since, "ends": since + timedelta(seconds=seconds) if since and seconds else None}


def _sums(row: Device | Node, now: PoolNow | None, inside: list[Holder]) -> tuple[Sum, Sum]:
    kind = "vram" if isinstance(row, Device) else "ram"
    total = now.total if now else None
    declared = row.declared if isinstance(row, Device) else row.ram_declared
    held = sum(h.held for h in inside)
    growth = sum(max(0, h.held - (h.used or 0)) for h in inside)
    knobs = snapshots.knobs_now()[0]
    back = tanks.kept(kind, total, (h.margin for h in inside), knobs) if total is not None else None
    used, free = (now.used, now.free) if now else (None, None)
    withheld = None if None in (total, used, free) else max(0, (total or 0) - (used or 0) - (free or 0))
    left = None if free is None or back is None else max(0, free - growth - back)
    terms = [("there is", gib(total)), ("in use", _less(used))]
    if withheld and withheld >= 1 << 20:
        alone = now is not None and now.reserved is not None and withheld - now.reserved < 1 << 20
        terms.append(("reserved by the driver" if alone else "the driver's, or not given back yet", _less(withheld)))
    terms += [("running jobs may still take", _less(growth)), ("kept back", _less(back))]
    there = total if declared is None else declared
    room = None if there is None else there - held
    return (
        Sum(tuple(terms), gib(left) if left is not None else "unknown"),
        Sum(
            (("declared" if declared is not None else "there is", gib(there)), ("booked by running jobs", _less(held))),
            "unknown" if room is None else gib(room) if room >= 0 else f"none, {gib(-room)} too much",
        ),
    )


def _alone(ledger: Sum, job: int) -> Sum:
    """Return a sum of a pool that a job has alone: what would be left is that job's."""
    none = ledger.left.startswith(("none", "0 "))
    terms = ledger.terms if none else (*ledger.terms, (f"kept for #{job}, alone", f"− {ledger.left}"))
    return Sum(terms, ledger.left if none else "nothing")


def _less(amount: int | None) -> str:
    return "unknown" if amount is None else f"− {gib(amount)}"


def _facts(row: Device | Node, now: PoolNow | None) -> tuple[tuple[str, str], ...]:
    if isinstance(row, Device):
        found = [
            ("Model", row.model or "not told"),
            ("UUID", row.uuid),
            ("Node", row.node.name),
            ("Index", str(row.index)),
            ("Read by", _backend(row)),
            ("Busy", f"{round((now.busy or 0) * 10) * 10} %" if now and now.busy is not None else "not told"),
            *hardware.facts(row, now),
        ]
        if row.by_hand:
            return _declared(row)
    else:
        found = [
            ("Node", row.name),
            ("Bounded by", "the machine" if row.capacity_note in ("", "host") else row.capacity_note),
            ("Keeps RAM by", (row.containment or {}).get("sentence") or "not looked at yet"),
            ("Containers", (row.containers or {}).get("sentence") or "not looked at yet"),
            ("Disk for runs", gib(row.disk_free) if row.disk_free is not None else "unknown"),
            ("Processes", _processes(row.processes_free)),
        ]
    return (*found, ("State", _state(now)), ("Last read", _read(now)))


def _declared(row: Device) -> tuple[tuple[str, str], ...]:
    """Return what is known of a device that no probe found: an admin's word."""
    any_gpu = "jobs that ask for any GPU, too" if row.any_gpu else "jobs that name its kind or backend, or it"
    number = row.index if row.driver_number is None else row.driver_number
    said = twice(row, row.node.devices.all())
    return (
        *((("Closed", said),) if said else ()),
        ("Kind", row.kind),
        ("Backends", ", ".join(row.backends)),
        ("Number", f"{row.index}, its driver's {number}" if number != row.index else str(row.index)),
        ("UUID", row.uuid),
        ("Node", row.node.name),
        ("Takes", any_gpu),
        ("Read by", _backend(row)),
    )


def _processes(free: int | None) -> str:
    if free is None:
        return "no bound"
    return f"room for {free // 1000 * 1000:,} more" if free >= 1000 else f"room for {free:,} more, then jobs wait"


def _backend(row: Device) -> str:
    offers = ", ".join(row.backends)
    if not row.measurable:
        return f"nobody{' (declared by hand)' if row.by_hand else ''}: no probe can"
    return f"{offers}, simulated" if row.simulated else offers


def _state(now: PoolNow | None) -> str:
    if now is None:
        return "not read yet"
    return now.state.replace("_", " ") + (f": {now.message}" if now.message else "")


def _read(now: PoolNow | None) -> str:
    age = clock.age(now.read_at, now.epoch, clock.now()) if now else None
    if age is None:
        return "never, or by a service that ended"
    if age < 5:
        return "each second"
    return timezone.localtime(timezone.now() - timedelta(seconds=age)).strftime("%Y-%m-%d %H:%M:%S")


def names(owners: Iterable[str]) -> dict[str, str]:
    """Return what to call owners: "job:7" is "#7 train"."""
    ids = {int(o[4:]): o for o in owners if o.startswith("job:") and o[4:].isdecimal()}
    jobs = Job.objects.filter(pk__in=ids).values_list("pk", "name")
    return {SERVICE: "Tidegate itself", **{ids[pk]: f"#{pk} {name}" for pk, name in jobs}}
