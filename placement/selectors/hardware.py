"""What a device is besides its size: part of another, one pool with RAM; what its driver keeps, what contexts cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from django.utils import timezone

from calibration import contexts
from calibration.domain.left_behind import WORTH_TELLING
from calibration.domain.one_pool import SHARES
from calibration.domain.resources import MIB, gib
from calibration.models import PoolNow, PoolProcesses
from placement import snapshots
from placement.models import AuditEntry, Device
from placement.selectors.wording import listing, mapping, near, whole

PERSONS = 4  # whose contexts are named one by one


def placeable(rows: Iterable[Device]) -> list[Device]:
    """Return the declared devices that are places, in order: a card whose instances are the devices is none itself."""
    there = [row for row in rows if not row.retired]
    parents = {row.parent for row in there}
    own = [row for row in there if not (row.heading and row.uuid in parents)]
    return sorted(own, key=lambda row: (row.by_hand, row.index, row.name, row.pk))


def left(now: PoolNow | None) -> tuple[tuple[str, str, int], ...]:
    """Return (owner, words, bytes) of each who left memory in a pool that no process explains any more."""
    found = []
    for one in listing(now.left) if now else []:
        owner, amount, until = (*one, None, None, None)[:3]
        size = whole(amount)
        if isinstance(owner, str) and size and isinstance(until, int | float):
            at = timezone.localtime(datetime.fromtimestamp(until, UTC))
            found.append((owner, f"held, no process; was {_name(owner)} until {near(at, timezone.localtime())}", size))
    return tuple(found)


def unexplained(now: PoolNow) -> int | None:
    """Return the bytes of a pool that neither a process nor anybody who left it explains."""
    if now.unexplained is None:
        return None
    return max(0, now.unexplained - sum(amount for _, _, amount in left(now)))


def files(now: PoolNow | None) -> str:
    """Return what to say of files that live in main memory, "" where they are few or something else explains it.

    They outlive whoever wrote them, are in no process's figure, and are given back when somebody removes them.
    """
    if now is None or (now.files or 0) < WORTH_TELLING or (now.unexplained or 0) < WORTH_TELLING:
        return ""
    size = gib((now.files or 0) // (16 * MIB) * 16 * MIB)
    return f"{size} are files in shared memory (/dev/shm and the like): they stay until somebody removes them"


def notes(device: Device, names: Mapping[str, str]) -> list[str]:
    """Return what is said beside a device's figures; ``names`` has those of the node's devices by UUID."""
    found = [f"a MIG instance of {names.get(device.parent, device.parent)}"] if device.parent else []
    return [*found, SHARES + ": one pool with RAM"] if device.shares or device.one_pool else found


def facts(device: Device, now: PoolNow | None) -> list[tuple[str, str]]:
    """Return what the device is and what its model is known for, one fact a line."""
    found = []
    if device.parent:
        found.append(("Part of", _parent(device)))
    if device.shares or device.one_pool:
        found.append(("Memory", "the machine's: need of the device and of RAM come out of one pool"))
    elif now is not None and now.reserved is not None:
        found.append(("Kept by the driver", f"reserved {gib(now.reserved)}: neither free nor in use"))
    elif now is not None and now.state == "ok" and not device.simulated:
        found.append(("Kept by the driver", "not told apart: it counts as use"))
    if device.model and not device.simulated:
        found.append(("A process's context", _contexts(device.model)))
    return found


def _parent(device: Device) -> str:
    row = PoolNow.objects.filter(node=device.node.name, pool=device.parent).first()
    if row is None:
        return device.parent
    used = f"; {gib(row.used)} of {gib(row.total)} in use in all" if row.used is not None else ""
    return f"{row.name} ({row.model or row.pool}): {row.message}{used}"


def _contexts(model: str) -> str:
    """Return what one process is taken to cost besides what its framework holds: by whose runs, and how many."""
    default = snapshots.knobs_now()[1].bytes_of("context_allowance_mib")
    known = contexts.by_person(model, default)
    told = [f"{gib(one.bytes)} in {user}'s runs (learned from {one.runs})" for user, one in known.items() if one.runs]
    few = sum(1 for one in known.values() if not one.runs)
    more = [f"and {len(told) - PERSONS} more"] if len(told) > PERSONS else []
    rest = f"{gib(default)} {'for everybody else' if told else 'by the knob: too few runs told'}"
    return "; ".join([*told[:PERSONS], *more, rest]) if told or few else f"{gib(default)} by the knob: no run told yet"


def guesses(now: PoolNow | None) -> dict[str, int]:
    """Return what owners with processes of unknown size may hold, bytes: what the known ones leave, evenly shared."""
    if now is None or now.used is None:
        return {}
    row = PoolProcesses.objects.filter(node=now.node, pool=now.pool).first()
    unknown: dict[str, int] = {}
    known = 0
    for one in listing(row.rows) if row else []:
        owner, amount = str(one[1]), whole(one[5])
        known += amount or 0
        unknown[owner] = unknown.get(owner, 0) + (amount is None)
    for one in listing(row.more) if row else []:
        owner, amount = str(one[0]), whole(one[2])
        known += amount or 0
        unknown[owner] = unknown.get(owner, 0) + (0 if amount is not None else whole(one[1]) or 0)
    count = sum(unknown.values())
    each = max(0, now.used - known) // count if count else 0
    return {owner: each * number for owner, number in unknown.items() if number}


def marks(pool: str, since: int) -> list[tuple[int, str]]:
    """Return (unix second, sentence) of each moment from which a device's history counts in another way."""
    rows = AuditEntry.objects.filter(
        subject=f"device {pool}", action="memory_call", at__gte=datetime.fromtimestamp(since, UTC)
    ).order_by("pk")
    return [(int(row.at.timestamp()), str(mapping(row.detail).get("said", ""))) for row in rows[:5]]


def _name(owner: str) -> str:
    return f"#{owner[4:]}" if owner.startswith("job:") else owner
