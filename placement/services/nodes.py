"""Nodes and devices: found on the machine, declared by admins, held and drained by operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import Count, Model, Q, Sum
from django.utils import timezone

from calibration.domain.resources import gib
from calibration.domain.samples import RAM, PoolSample, PoolState, Reading
from calibration.models import PoolNow
from placement.domain.declaring import by_hand, declarations, inventory
from placement.domain.errors import NotFound, Refused
from placement.models import AuditEntry, Cycle, Device, Lease, Node
from placement.selectors import alone, devices
from placement.services import audit, members, numbers
from placement.services.cycle_row import changing

MEMORY_CALL = "memory_call"
_KNOWN = tuple(inventory.Known.__dataclass_fields__)


def discover(node_name: str, reading: Reading) -> list[str]:
    """Declare this machine and the devices a reading found; return a sentence per change.

    Two short queries and no write where nothing has changed, so every tick may call it.
    """
    found = [pool for pool in reading.pools.values() if pool.kind != "ram"]
    uuids = [pool.pool for pool in found]
    over = [pool.pool for pool in found if pool.state is PoolState.GONE]
    if Node.objects.filter(name=node_name).exists() and not inventory.changes(
        node_name, _known(node_name, uuids), found, _leased(node_name, over)
    ):
        return []
    with changing():
        node, _ = Node.objects.get_or_create(name=node_name)
        # Read again under the lock: an admin may have edited in between.
        changed = inventory.changes(node_name, _known(node_name, uuids), found, _leased(node_name, over))
        for change in changed:
            fields = {**change.fields, "node": node} if "node" in change.fields else dict(change.fields)
            if change.new:
                Device.objects.create(uuid=change.uuid, **fields)
            else:
                Device.objects.filter(uuid=change.uuid).update(**fields)
            audit.record(None, "discover", f"device {change.uuid}", said=change.sentence)
    return [change.sentence for change in changed]


def _leased(node_name: str, pools: list[str]) -> frozenset[str]:
    """Return those of the pools that somebody still holds."""
    live = Lease.objects.filter(node=node_name, pool__in=pools, released_at=None) if pools else Lease.objects.none()
    return frozenset(live.values_list("pool", flat=True))


def retired(node_name: str, uuids: Iterable[str]) -> frozenset[str]:
    """Return those of the devices that are no longer declared on a node."""
    rows = Device.objects.filter(node__name=node_name, uuid__in=list(uuids), retired=True)
    return frozenset(rows.values_list("uuid", flat=True))


def one_pool(node_name: str) -> frozenset[str]:
    """Return the devices of which an admin said that they share the node's memory."""
    rows = Device.objects.filter(node__name=node_name, retired=False, one_pool=True)
    return frozenset(rows.values_list("uuid", flat=True))


def tells_reserved(node_name: str) -> dict[str, bool]:
    """Return of each device that was read before whether its driver told what it keeps for itself."""
    rows = PoolNow.objects.filter(node=node_name, kind="vram", state=PoolState.OK.value)
    return {pool: reserved is not None for pool, reserved in rows.values_list("pool", "reserved")}


def mark_reserved(reading: Reading, before: Mapping[str, bool]) -> dict[str, bool]:
    """Mark in a device's history where its use began, or ceased, to include what the driver keeps.

    Return the new state. The two memory calls differ in that; which of them there is may change with the driver.
    """
    now = dict(before)
    for pool in reading.pools.values():
        if pool.kind == RAM or pool.state is not PoolState.OK or pool.shares:
            continue
        tells = now[pool.pool] = pool.reserved is not None
        if before.get(pool.pool, tells) == tells:
            continue
        kept = f" ({gib(pool.reserved)})" if pool.reserved else ""
        word = "no longer includes" if tells else "includes"
        said = f"Use of {pool.name} {word} what the driver keeps for itself{kept} from here on."
        audit.record(None, MEMORY_CALL, f"device {pool.pool}", said=said)
    return now


def expected(node_name: str) -> list[PoolSample]:
    """Return this node's declared devices as the instrument is to expect them, readable or not."""
    devices = Device.objects.filter(node__name=node_name, retired=False, simulated=False, measurable=True)
    return [
        PoolSample(
            pool=device.uuid,
            kind="vram",
            name=device.name,
            state=PoolState.UNREADABLE,
            message="not read since the service started",
            index=device.index,
            model=device.model,
            backend=device.backend,
            parent=device.parent,
            shares=device.shares,
        )
        for device in devices
    ]


def preview_device(device: Device, changes: Mapping[str, Any]) -> list[str]:
    """Return what an edit would do to running jobs, or why it cannot be made, a sentence each. Nothing is changed."""
    if wrong := _device_problems(device, changes):
        return list(wrong.values())
    inside = _inside(device.node.name, device.uuid, device, changes.get("exclusive_only"))
    return declarations.device_effects(changes, before=device.declared, **inside)


def preview_node(node: Node, changes: Mapping[str, Any]) -> list[str]:
    """Return the same for a node."""
    if wrong := _node_problems(node, changes):
        return list(wrong.values())
    total = _reported(node.name, RAM) or 0
    declared = changes.get("ram_declared", node.ram_declared)
    as_device = {"declared": total if declared is None else declared}
    as_device |= {name: changes[name] for name in ("draining",) if name in changes}
    before = total if node.ram_declared is None else node.ram_declared
    said = declarations.device_effects(as_device, before=before, **_inside(node.name, RAM))
    return [*said, *declarations.policy_effects(changes)]


def _inside(node: str, pool: str, device: Device | None = None, only: bool | None = None) -> dict[str, Any]:
    """Return the bytes leased of a pool, how many jobs hold them, and whether one has it alone."""
    live = Lease.objects.filter(node=node, pool=pool, released_at=None)
    held = live.aggregate(bytes=Sum("bytes"), jobs=Count("job", distinct=True))
    by = alone.holder(devices.active_jobs(), node, device, exclusive_only=only)
    return {"leased": held["bytes"] or 0, "jobs": held["jobs"], "alone": by is not None}


def edit_device(
    user: Any, device_id: int, changes: Mapping[str, Any], *, expected: Mapping[str, Any] | None = None
) -> list[str]:
    """Change a declaration; return what it does. ``expected`` are the values that the admin saw.

    Fields: name, declared (bytes), exclusive_only, draining, backends; one_pool of one that was found; any_gpu, index
    and driver_number of one that was declared by hand. In force at the next decision.
    """
    members.need(user, "administer")
    with changing():
        device: Device = _find("device", device_id)
        label = f"{device.name} of {device.node.name}"
        saw = dict(expected or {})
        if isinstance(words := saw.get("backends"), list):
            saw["backends"] = by_hand.stored(words)
        _compare(device, saw, label, f"device {device.uuid}")
        if wrong := _device_problems(device, changes):
            raise Refused(" ".join(wrong.values()), wrong)
        said = preview_device(device, changes)
        if "backends" in changes:
            first = "" if device.by_hand else device.backend
            changes = {**changes, "backends": by_hand.stored(changes["backends"], first)}
        _store(user, device, changes, "edit_device", f"device {device.uuid}", label)
    return said


def edit_node(
    user: Any, node_id: int, changes: Mapping[str, Any], *, expected: Mapping[str, Any] | None = None
) -> None:
    """Change a node's declaration, one of NODE_FIELDS: ram_declared in bytes (None: all there is), shares, policy."""
    members.need(user, "administer")
    with changing():
        node: Node = _find("node", node_id)
        _compare(node, expected or {}, node.name, f"node {node.name}")
        if wrong := _node_problems(node, changes):
            raise Refused(" ".join(wrong.values()), wrong)
        _store(user, node, changes, "edit_node", f"node {node.name}", node.name)


def _device_problems(device: Device, changes: Mapping[str, Any]) -> dict[str, str]:
    others = list(device.node.devices.filter(retired=False).exclude(pk=device.pk))
    found = declarations.device_problems(
        changes,
        label=device.name,
        total=_reported(device.node.name, device.uuid),
        taken=frozenset(other.name for other in others),
        own_backend=device.backend,
        by_hand=device.kind.lower() if device.by_hand else "",
        numbers=numbers.known(others),
    )
    return found or numbers.clash(device, changes, others)


def _node_problems(node: Node, changes: Mapping[str, Any]) -> dict[str, str]:
    after = {"ram_high": node.ram_high, "ram_low": node.ram_low, **changes}
    total = _reported(node.name, RAM)
    return declarations.node_problems(
        changes, label=node.name, total=total, marks=(after["ram_high"], after["ram_low"])
    )


def hold(user: Any, kind: str, ident: Any, *, until: datetime | None = None, why: str = "") -> None:
    """Let nothing new start: kind "queue", "node" or "device"; ends by itself at ``until`` (aware)."""
    members.need(user, "operate")
    now = timezone.now()
    if until is not None and until <= now:
        raise Refused("The hold would end before it begins.", {"until": "Give a time that is still to come."})
    if len(why) > 200:
        raise Refused("The reason is too long.", {"why": f"It has {len(why)} characters; 200 are the most."})
    with changing():
        row = _find(kind, ident)
        row.held_by, row.held_at, row.held_until, row.held_why = user.get_username(), now, until, why
        row.save(update_fields=["held_by", "held_at", "held_until", "held_why"])
        audit.record(user, "hold", _subject(row), until=until and until.isoformat(), why=why)


def release(user: Any, kind: str, ident: Any) -> None:
    """End a hold; one that is not there is no error."""
    members.need(user, "operate")
    with changing():
        row = _find(kind, ident)
        before, row.held_by, row.held_at, row.held_until, row.held_why = row.held_by, "", None, None, ""
        row.save(update_fields=["held_by", "held_at", "held_until", "held_why"])
        audit.record(user, "release", _subject(row), held_by=before)


def drain(user: Any, kind: str, ident: Any, on: bool) -> None:
    """Let what runs on a node or device end and nothing new start, or end that."""
    members.need(user, "operate")
    if kind == "queue":
        raise Refused("The queue has nothing to drain; hold it instead.")
    with changing():
        row = _find(kind, ident)
        row.draining = bool(on)
        row.save(update_fields=["draining"])
        audit.record(user, "drain" if on else "undrain", _subject(row))


def _known(node_name: str, uuids: list[str]) -> list[inventory.Known]:
    rows = Device.objects.filter(Q(node__name=node_name) | Q(uuid__in=uuids))
    return [
        inventory.Known(*row)
        for row in rows.values_list(*("node__name" if name == "node" else name for name in _KNOWN))
    ]


def _find(kind: str, ident: Any) -> Any:
    if kind == "queue":
        return Cycle.objects.get_or_create(pk=1)[0]
    model: type[Model] = {"node": Node, "device": Device}.get(kind) or _no_such(kind)
    try:
        known = model._default_manager.filter(pk=ident)
        row = (known.filter(retired=False) if kind == "device" else known).first()
    except (ValueError, TypeError):
        row = None
    if row is None:
        raise NotFound(f"There is no {kind} {ident}.")
    return row


def _no_such(kind: str) -> Any:
    raise NotFound(f"There is nothing called {kind!r} to hold: it is queue, node or device.")


def _reported(node_name: str, pool: str) -> int | None:
    """Return what a readable pool says it has, None where it cannot be read now."""
    rows = PoolNow.objects.filter(node=node_name, pool=pool, state=PoolState.OK.value)
    return rows.values_list("total", flat=True).first()


def _compare(row: Any, expected: Mapping[str, Any], label: str, subject: str) -> None:
    moved = {name: getattr(row, name) for name, value in expected.items() if getattr(row, name) != value}
    if not moved:
        return
    last = AuditEntry.objects.filter(subject=subject).exclude(action__in=("hold", "release")).order_by("-pk").first()
    by = f" by {last.who}" if last else ""
    now = ", ".join(f"{name} is {value} now" for name, value in moved.items())
    raise Refused(f"{label} was changed meanwhile{by}: {now}. Look at it and save again.")


def _store(user: Any, row: Any, changes: Mapping[str, Any], action: str, subject: str, label: str) -> None:
    before = {name: getattr(row, name) for name in changes if getattr(row, name) != changes[name]}
    if not before:
        return
    for name in before:
        setattr(row, name, changes[name])
    columns = [name for name in before if name != "backends"]
    row.save(update_fields=[*columns, *(("backend", "more_backends") if "backends" in before else ())])
    after = {name: changes[name] for name in before}
    audit.record(user, action, subject, label=label, before=before, after=after)


def _subject(row: Any) -> str:
    if isinstance(row, Cycle):
        return "queue"
    return f"device {row.uuid}" if isinstance(row, Device) else f"node {row.name}"
