"""Whose memory it is: node by node, pool by pool, owner by owner, process by process, and by which rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from calibration import clock
from calibration.domain.lineage import SERVICE
from calibration.domain.resources import MIB, gib
from calibration.models import PoolNow, PoolProcesses
from placement.models import Job
from placement.selectors import devices, hardware, tanks
from placement.selectors.tanks import Tank
from placement.selectors.wording import listing, mapping, whole

RULES = {
    "cgroup": "is in the job's control group",
    "container": "is in a container that carries the job's label",
    "root": "started by its runner, or below what that started",
    "supervisor": "below its runner in the chain of parents",
    "known": "was below the job before; its parent ended, it stays the job's",
    "marker": "its environment carries the job's mark",
    "service": "started with the service",
    "session": "shares the session of one of the job's processes",
    "": "no job started it and none has it in its session",
}
UNEXPLAINED = "in use, but no process that can be read has it"
RUNNER = "a runner: what starts and watches a job is Tidegate's own"
NARROW = 0.15  # percent of a pool below which nothing is drawn
LABELLED = 11.0  # percent from which on there is room for a name


@dataclass(frozen=True, slots=True)
class Process:
    """One process in one pool. ``name`` is "" where whoever looks may not see it."""

    pid: int
    name: str
    user: str
    why: str
    used: str
    exact: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Part:
    """Everything of one owner in one pool; ``more`` sums the processes that are not listed."""

    ident: str
    tone: str
    who: str
    href: str
    used: str
    share: str
    processes: tuple[Process, ...]
    more: str
    note: str


@dataclass(frozen=True, slots=True)
class Block:
    """One rectangle of the drawing. ``level`` 0 is the pool, 1 an owner, 2 a process; x and width in percent."""

    level: int
    x: float
    width: float
    tone: str
    label: str
    title: str

    @property
    def y(self) -> int:
        """Return where it begins, in pixels."""
        return self.level * 30


@dataclass(frozen=True, slots=True)
class Filled:
    """One pool with who fills it."""

    tank: Tank
    used: str
    parts: tuple[Part, ...]
    blocks: tuple[Block, ...]
    stale: bool


@dataclass(frozen=True, slots=True)
class Machine:
    """One node with its pools, in the overview's order."""

    name: str
    pools: tuple[Filled, ...]


@dataclass(frozen=True, slots=True)
class _Named:
    name: str
    mine: bool


def _why(rule: str) -> str:
    """Return a rule in words; of a container that no label names, whose docker client may have started it."""
    kind, sign, jobs = rule.partition(":")
    if kind == "client" and sign:
        numbers = " and ".join(f"#{number}" for number in jobs.split(","))
        return f"external, a docker client of {numbers} is or was running: it may have started this container"
    return RULES.get(rule, rule)


def _more(count: int, rest: int | None, listed: int = 1) -> str:
    if not count:
        return ""
    if not listed:
        size = "of unknown size" if rest is None else gib(rest) if rest >= MIB else "less than 1 MiB"
        return f"{count} process{'es' if count > 1 else ''}, {size}"
    return f"and {count} more with {gib(rest)}" if rest is not None else f"and {count} more, whose size is unknown"


def page(viewer: int, *, sees_commands: bool) -> tuple[Machine, ...]:
    """Return every node with its pools; ``viewer`` is the id of whoever looks and sees the names of their own."""
    readings = {(row.node, row.pool): row for row in PoolNow.objects.all()}
    inside = {(row.node, row.pool): row for row in PoolProcesses.objects.all()}
    names = _names(readings.values(), viewer)
    found: dict[str, list[Filled]] = {}
    for tank in devices.all_tanks(sees_commands=sees_commands):
        key = (tank.node, tank.pool)
        pool = _Pool(readings.get(key), inside.get(key), tank, names, sees_commands)
        found.setdefault(tank.node, []).append(pool.filled())
    return tuple(Machine(name, tuple(pools)) for name, pools in found.items())


def as_json(viewer: int, *, sees_commands: bool) -> list[dict[str, Any]]:
    """Return the same for the API: bytes, null where unknown."""
    readings = list(PoolNow.objects.order_by("node", "pool"))
    inside = {(row.node, row.pool): row for row in PoolProcesses.objects.all()}
    names = _names(readings, viewer)
    return [_pool_json(now, inside.get((now.node, now.pool)), names, sees_commands) for now in readings]


def _pool_json(
    now: PoolNow, inside: PoolProcesses | None, names: Mapping[str, _Named], sees_commands: bool
) -> dict[str, Any]:
    amounts: dict[str, int | None] = {owner: whole(amount) for owner, amount in mapping(now.owners).items()}
    amounts[""] = now.external
    rows = [row for row in listing(inside and inside.rows) if len(row) == 6]
    more = {str(one[0]): (whole(one[1]) or 0, whole(one[2])) for one in listing(inside and inside.more)}

    def process(row: list[Any]) -> dict[str, Any]:
        pid, owner, rule, user, name, amount = row
        seen = sees_commands or owner == SERVICE or (owner in names and names[owner].mine)
        why = RUNNER if owner == SERVICE and rule != "service" else _why(str(rule))
        return {
            "pid": whole(pid) or 0, "user": str(user), "name": str(name) if seen else None, "rule": str(rule),
            "why": why, "bytes": whole(amount),
        }  # fmt: skip

    return {
        "node": now.node, "pool": now.pool, "total": now.total, "used": now.used,
        "unexplained": now.unexplained, "reserved": now.reserved,
        "owners": [
            {
                "owner": owner, "bytes": amount, "processes": [process(row) for row in rows if str(row[1]) == owner],
                "more": more.get(owner, (0, 0))[0], "more_bytes": more.get(owner, (0, 0))[1],
            }
            for owner, amount in amounts.items()
        ],
    }  # fmt: skip


def _names(readings: Iterable[PoolNow], viewer: int) -> dict[str, _Named]:
    owners = {owner for row in readings for owner in mapping(row.owners)}
    ids = [int(o[4:]) for o in owners if o.startswith("job:") and o[4:].isdecimal()]
    jobs = Job.objects.filter(pk__in=ids).values_list("pk", "name", "user_id")
    return {f"job:{pk}": _Named(f"#{pk} {name}", user == viewer) for pk, name, user in jobs}


class _Pool:
    """One pool while it is put together."""

    def __init__(
        self,
        now: PoolNow | None,
        inside: PoolProcesses | None,
        tank: Tank,
        names: Mapping[str, _Named],
        sees_commands: bool,
    ) -> None:
        self.now, self.tank, self.names, self.sees_commands = now, tank, names, sees_commands
        self.rows: dict[str, list[list[object]]] = {}
        for row in listing(inside.rows) if inside else []:
            self.rows.setdefault(str(row[1]), []).append(row)
        self.more = {str(one[0]): (whole(one[1]) or 0, whole(one[2])) for one in listing(inside and inside.more)}
        self.blocks: list[Block] = []
        self.parts: list[Part] = []
        self.at = 0.0
        self.total = (now.total if now else None) or 0

    def filled(self) -> Filled:
        """Return the pool with its owners, largest job first, then Tidegate, outsiders, and what nobody explains."""
        now = self.now
        if self.tank.unread:
            return Filled(self.tank, "booked only", (), (), stale=False)
        if now is None or not now.total:
            return Filled(self.tank, "not read", (), (), stale=True)
        self.blocks.append(Block(0, 0.0, 100.0, "whole", f"{self.tank.name} · {gib(self.total)}", "all there is"))
        owners = {owner: whole(amount) for owner, amount in mapping(now.owners).items()}
        jobs = sorted((o for o in owners if o != SERVICE), key=lambda o: (-(owners[o] or 0), o))
        for owner in jobs:
            if owners[owner] != 0:
                self._part(owner, _tone(owner), self._name(owner), owners[owner])
        if owners.get(SERVICE):
            self._part(SERVICE, "self", "Tidegate itself", owners[SERVICE])
        self._part("", "ext", "not ours", now.external, "no job of ours; the gate leaves it its memory")
        for owner, words, amount in hardware.left(now):
            self._part(f"left-{owner}", "unk", words, amount, "nobody's: who starts next does not inherit it")
        rest = hardware.unexplained(now)
        self._part("?", "unk", "not explained", rest, hardware.files(now) or UNEXPLAINED)
        held = now.reserved
        if held:
            self._part("!", "drv", "the driver's own", held, "neither free nor used: the driver keeps it to itself")
        if now.draining:
            self._line("!draining", "kept", "coming back", "a job ended; its memory is still being given back")
        age = clock.age(now.read_at, now.epoch, clock.now())
        used = f"{gib(now.used)} of {gib(self.total)} in use" if now.used is not None else "use unknown"
        return Filled(self.tank, used, tuple(self.parts), tuple(self.blocks), stale=age is None or age > 10)

    def _name(self, owner: str) -> str:
        return self.names[owner].name if owner in self.names else owner

    def _line(self, owner: str, tone: str, who: str, note: str) -> None:
        self.parts.append(Part(self._ident(owner), tone, who, "", "", "", (), "", note))

    def _ident(self, owner: str) -> str:
        word = {"": "outside", "?": "unexplained", "!": "driver", "!draining": "draining"}.get(owner, owner)
        return f"{self.tank.ident}-{word.replace(':', '-')}"

    def _part(self, owner: str, tone: str, who: str, amount: int | None, note: str = "") -> None:
        rows = self.rows.get(owner, [])
        count, rest = self.more.get(owner, (0, 0))
        if not amount and not rows and amount is not None:
            return
        self._draw(tone, who, amount, rows, rest)
        number = owner.removeprefix("job:")
        self.parts.append(
            Part(
                ident=self._ident(owner),
                tone=tone,
                who=who,
                href=f"/jobs/{number}" if number != owner else "",
                used=gib(amount) if amount is not None else "unknown",
                share=f"{amount / self.total * 100:.0f} %" if amount is not None else "",
                processes=tuple(self._process(owner, row) for row in rows),
                more=_more(count, rest, len(rows)),
                note=note,
            )
        )

    def _process(self, owner: str, row: list[object]) -> Process:
        pid, _, rule, user, name, amount = row
        size = whole(amount)
        own = owner in self.names and self.names[owner].mine
        return Process(
            pid=whole(pid) or 0,
            name=str(name) if self.sees_commands or own or owner == SERVICE else "",
            user=str(user),
            why=RUNNER if owner == SERVICE and rule != "service" else _why(str(rule)),
            used=gib(size) if size is not None else "unknown",
            exact=f"about {size:,} bytes" if size is not None else "the driver does not say",
        )

    def _draw(self, tone: str, who: str, amount: int | None, rows: list[list[object]], rest: int | None) -> None:
        """Add an owner's rectangle and, below it, those of its processes, which never reach beyond it."""
        if not amount or not self.total:
            return
        width = min(amount / self.total * 100, 100.0 - self.at)
        if width < NARROW:
            return
        self.blocks.append(_block(1, self.at, width, tone, who, f"{who}: {gib(amount)}"))
        sizes = [(f"pid {row[0]}", whole(row[5]) or 0) for row in rows]
        if rest:
            sizes.append(("others", rest))
        scale = width / max(amount, sum(size for _, size in sizes))
        at = self.at
        for name, size in sizes:
            if size * scale >= NARROW:
                self.blocks.append(_block(2, at, size * scale, tone, name, f"{name} of {who}: {gib(size)}"))
            at += size * scale
        self.at += width


def _block(level: int, x: float, width: float, tone: str, label: str, title: str) -> Block:
    return Block(level, round(x, 2), round(width, 2), tone, label if width >= LABELLED else "", title)


def _tone(owner: str) -> str:
    number = owner.removeprefix("job:")
    return tanks.tone(int(number)) if number.isdecimal() else "faint"
