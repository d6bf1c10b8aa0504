"""What the devices page and the queue's tanks show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from calibration import clock
from calibration.domain.resources import gib
from calibration.domain.samples import RAM
from calibration.models import PoolNow
from placement import snapshots
from placement.domain.jobs import ACTIVE
from placement.domain.knobs import Knobs
from placement.models import Device, Job, Node
from placement.nodes import twice
from placement.selectors import alone, hardware, tanks, wording
from placement.selectors.tanks import Tank

RUNNING = (
    "name", "array", "array_index", "user__username", "workers", "priority", "state", "node", "device", "basis",
    "kind", "exclusive", "more_devices", "charges", "used", "admitted_at", "started_at", "time_limit_s", "attempt",
    "flags", "unsupervised", "leader_exit", "stop_requested_at", "stop_by",
    "progress__share", "progress__left_s", "progress__read_at", "progress__usual_s",
)  # fmt: skip
"""The columns that pages and the API show of a job that runs; the others weigh ten times as much."""


CLOSED = {"heading": "no instance", "unmeasured": "not measured"}
"""Words for devices that are there and take nobody."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one rendering shares: active jobs, what the user may see, the clock, the knobs in force."""

    jobs: list[Job]
    sees_commands: bool
    at: float
    knobs: Knobs


def active_jobs() -> list[Job]:
    """Return admitted and running jobs with their users, oldest first."""
    return list(
        Job.objects.filter(state__in=[s.value for s in ACTIVE])
        .select_related("user", "progress")
        .only(*RUNNING)
        .order_by("admitted_at", "id")
    )


def all_tanks(jobs: list[Job] | None = None, *, sees_commands: bool) -> tuple[Tank, ...]:
    """Return a tank per declared device and one per node's RAM, in node order, devices first."""
    jobs = active_jobs() if jobs is None else jobs
    readings = tanks.by_pool(PoolNow.objects.all())
    look = Look(jobs, sees_commands, clock.now(), snapshots.knobs_now()[0])
    found: list[Tank] = []
    nodes = list(Node.objects.order_by("name").prefetch_related("devices"))
    for node in nodes:
        ram = _ram(node, readings.get((node.name, RAM)), look, many=len(nodes) > 1)
        names = {d.uuid: d.name for d in node.devices.all()}
        for device in hardware.placeable(node.devices.all()):
            made = _device(node, device, readings.get((node.name, device.uuid)), look, names)
            if (device.shares or device.one_pool) and not made.state and made.alone is None:
                made = replace(made, left=ram.left, left_title=ram.left_title, state=ram.state)
            found.append(made)
        found.append(ram)
    return tuple(found)


def unread() -> frozenset[str]:
    """Return the UUIDs of the devices that nobody measures."""
    return frozenset(Device.objects.filter(measurable=False).values_list("uuid", flat=True))


def named() -> dict[str, str]:
    """Return the names of all devices that there are or were, by UUID."""
    return dict(Device.objects.values_list("uuid", "name"))


def device(ident: int) -> Device | None:
    """Return a declared device with its node."""
    return Device.objects.select_related("node").filter(pk=ident, retired=False).first()


def node(ident: int) -> Node | None:
    """Return a node."""
    return Node.objects.filter(pk=ident).first()


def nodes() -> list[Node]:
    """Return all nodes with their declared devices, by name."""
    return list(Node.objects.order_by("name").prefetch_related("devices"))


def machines() -> list[str]:
    """Return a line per node: what bounds its RAM, and the disk that runs may still fill."""
    return [f"{row.name}: {_bounded_by(row.capacity_note)}; {_disk(row.disk_free)}." for row in nodes()]


def _bounded_by(note: str) -> str:
    if note in ("", "host"):
        return "RAM is all that the host has"
    return f"RAM is what the control group {note} allows"


def _disk(free: int | None) -> str:
    return "how much disk is left for runs is unknown" if free is None else f"{gib(free)} of disk left for runs"


def by_key() -> dict[tuple[str, str], Device | Node]:
    """Return what is declared, keyed by node and pool: a node stands for its RAM."""
    found: dict[tuple[str, str], Device | Node] = {}
    for row in nodes():
        found[row.name, RAM] = row
        found |= {(row.name, d.uuid): d for d in hardware.placeable(row.devices.all())}
    return found


def declared(node_name: str, pool: str) -> int | None:
    """Return the declared bytes of a pool, None where all that is there may be taken."""
    if pool == RAM:
        return Node.objects.filter(name=node_name).values_list("ram_declared", flat=True).first()
    return Device.objects.filter(node__name=node_name, uuid=pool).values_list("declared", flat=True).first()


def pool_exists(node_name: str, pool: str) -> bool:
    """Return whether this node has, or had, such a pool."""
    if pool == RAM:
        return Node.objects.filter(name=node_name).exists()
    return Device.objects.filter(node__name=node_name, uuid=pool).exists()


def _device(node: Node, device: Device, now: PoolNow | None, look: Look, names: Mapping[str, str]) -> Tank:
    total = now.total if now and now.total is not None else None
    shares = device.shares or device.one_pool
    inside = tanks.holders(look.jobs, node.name, device.uuid, now)
    if device.measurable:
        layers, legend, left = tanks.fill(
            now, total or device.declared, "vram", inside, knobs=look.knobs, sees_commands=look.sees_commands
        )
    else:
        layers, legend, left = tanks.booked(device.declared, inside)
    state, notes = _state(now, look, measurable=device.measurable)
    if said := twice(device, node.devices.all()):
        state, notes = "same number", [said.rstrip(".")]
    notes += hardware.notes(device, names) + _holds(device)
    notes += ["takes exclusive jobs only"] if device.exclusive_only else []
    if not device.measurable:
        only = "" if device.any_gpu and device.kind == "GPU" else "; only for jobs that name its kind or backend"
        notes.append(f"booked only: nothing measures it{only}")
    if device.simulated and "simulated" not in (device.model or device.backend):
        notes.append("simulated")
    held = 0 if shares else sum(h.held for h in inside)  # of one pool with RAM nothing is held but RAM
    if left is not None and not shares:
        left = min(left, max(0, device.declared - held))
    if who := alone.holder(look.jobs, node.name, device):
        left = 0
        notes.append(alone.note(who, device))
    part = device.declared / total * 100 if total and device.declared < total and not shares else None
    if part is not None:
        notes.append(f"{gib(device.declared, total)} of it declared")
    return Tank(
        node=node.name,
        pool=device.uuid,
        name=device.name,
        model=_model(device),
        size=tanks.size_of(_model(device), total or device.declared),
        exact=f"{total or device.declared:,} bytes",
        left=_left(left) if state == "" else "closed",
        left_title=f"{left:,} bytes" if left is not None else "unknown",
        over=_over(held, device.declared),
        layers=layers,
        owners=legend,
        notes=tuple(notes),
        state=state,
        device=device.pk,
        declared=device.declared,
        declared_at=part,
        unread=not device.measurable,
        alone=who.pk if who else None,
    )


def _model(device: Device) -> str:
    """Return what kind of device it is: its model, of one that nobody reads its kind and what it offers."""
    return device.model or (f"{device.kind} {'/'.join(device.backends)}" if device.by_hand else device.backend)


def _ram(node: Node, now: PoolNow | None, look: Look, *, many: bool) -> Tank:
    total = now.total if now else None
    inside = tanks.holders(look.jobs, node.name, RAM, now)
    layers, legend, left = tanks.fill(now, total, "ram", inside, knobs=look.knobs, sees_commands=look.sees_commands)
    state, notes = _state(now, look, measurable=True)
    notes += [said] if (said := hardware.files(now)) else []
    notes += _holds(node)
    if node.ram_pressure:
        notes.append("memory pressure: nothing starts until use falls below the low mark")
    if left is not None and node.ram_declared is not None:
        left = min(left, max(0, node.ram_declared - sum(h.held for h in inside)))
    if who := alone.holder(look.jobs, node.name):
        left = 0
        notes.append(alone.note(who))
    if node.ram_declared is not None and (total is None or node.ram_declared < total):
        notes.append(f"{gib(node.ram_declared, total)} of it declared")
    return Tank(
        node=node.name,
        pool=RAM,
        name=f"RAM of {node.name}" if many else "RAM",
        model=node.name,
        size=tanks.size_of(node.name, total),
        exact=f"{total:,} bytes" if total else "",
        left=_left(left) if state == "" else "closed",
        left_title=f"{left:,} bytes" if left is not None else "unknown",
        over=_over(sum(h.held for h in inside), node.ram_declared),
        layers=layers,
        owners=legend,
        notes=tuple(notes),
        state=state,
        declared=node.ram_declared,
        alone=who.pk if who else None,
        declared_at=node.ram_declared / total * 100
        if total and node.ram_declared and node.ram_declared < total
        else None,
    )


def _over(held: int, declared: int | None) -> str:
    """Return by how much leases are above what is declared, "" where they are not: a declaration may be lowered."""
    return gib(held - declared, declared) if declared is not None and held > declared else ""


def _left(amount: int | None) -> str:
    return "nothing" if amount == 0 else gib(amount)


def _state(now: PoolNow | None, look: Look, *, measurable: bool) -> tuple[str, list[str]]:
    """Return a word for why nothing can start here ("" when the reading is good) and what it means."""
    if not measurable:
        return "", []
    if now is not None and now.state in CLOSED:
        return CLOSED[now.state], [now.message]
    if now is None or (now.read_at is None and now.state == "ok"):
        return "no reading", ["not read yet: nothing starts here before the first reading"]
    if now.state != "ok":
        word = now.state.replace("_", " ")
        return word, [f"{word}: {now.message or 'nothing new starts here'}"]
    age = clock.age(now.read_at, now.epoch, look.at)
    limit = look.knobs.stale_seconds
    if age is None or age > limit:
        return "stale", [f"last reading older than {limit:g} s: nothing new starts here"]
    return "", []


def _holds(row: Device | Node) -> list[str]:
    notes = [wording.held(row.held_by, row.held_until, row.held_why)] if row.held_by else []
    return [*notes, "draining: running jobs go on, nothing new starts"] if row.draining else notes
