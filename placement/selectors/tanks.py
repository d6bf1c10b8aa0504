"""A pool as a tank: who is in it, what will still grow, what is kept back, what is left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.text import slugify

from calibration.domain.lineage import SERVICE
from calibration.domain.resources import MIB, gib
from calibration.models import PoolNow
from placement.domain.knobs import Knobs
from placement.domain.world import reservations
from placement.domain.world.snapshot import Pool
from placement.selectors import hardware
from placement.selectors.wording import listing, mapping, steady, whole

TONES = 8
NAMED = 5  # owners beside a tank


@dataclass(frozen=True, slots=True)
class Layer:
    """One stretch of the bar. ``x`` and ``width`` in percent of the pool's total."""

    kind: str  # used, growth, external, unknown, kept
    tone: str
    x: float
    width: float
    title: str


@dataclass(frozen=True, slots=True)
class Owner:
    """One line of the legend, and of the table: who, use, growth. ``href`` "" where there is nothing to open."""

    tone: str
    who: str
    used: str
    growth: str = ""
    title: str = field(default="", repr=False)  # exact figures on hover are no reason to draw anew
    href: str = ""

    @property
    def text(self) -> str:
        """Return the line: "#41 train-vit 11.0 GiB + 2.1 GiB growth"."""
        return f"{self.who} {self.used}" + (f" + {self.growth} growth" if self.growth else "")

    @property
    def ident(self) -> str:
        """Return what this line keeps while others come and go: the job's number, "" where it leads nowhere."""
        return self.href.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Tank:
    """One pool as pages show it. ``left`` is a text; ``state`` is a word, "" when all is well."""

    node: str
    pool: str
    name: str
    model: str
    size: str
    exact: str = field(repr=False)
    left: str
    left_title: str = field(repr=False)
    layers: tuple[Layer, ...]
    owners: tuple[Owner, ...]
    notes: tuple[str, ...]
    state: str = ""
    device: int | None = None
    declared: int | None = None
    over: str = ""  # by how much more is leased than declared: then nothing new starts
    declared_at: float | None = None  # percent of the total, None where it is the total
    unread: bool = False  # nobody measures it: what is drawn is booked
    alone: int | None = None  # the job that has it alone: then nothing is left, whatever is free

    @property
    def ident(self) -> str:
        """Return a word for this pool that is fit for an id."""
        return slugify(f"{self.node}-{self.pool}")

    @property
    def named(self) -> tuple[Owner, ...]:
        """Return the owners that a glance has room for: all, or the first of many."""
        return self.owners if len(self.owners) <= NAMED + 1 else self.owners[:NAMED]

    @property
    def unnamed(self) -> int:
        """Return how many more there are."""
        return len(self.owners) - len(self.named)


@dataclass(frozen=True, slots=True)
class Holder:
    """What a job holds of this pool: bytes; ``used`` None while it is unknown."""

    job: int
    name: str
    used: int | None
    held: int
    margin: int


def tone(job: int) -> str:
    """Return the colour class that a job keeps everywhere."""
    return f"o{job % TONES + 1}"


def holders(jobs: Iterable[Any], node: str, pool: str, now: PoolNow | None) -> list[Holder]:
    """Return who holds a charge on the pool, in job order; use comes from the newest reading."""
    measured = mapping(now.owners) if now else {}
    found = []
    for job in jobs:
        charges = mapping(job.charges)
        # One whose device shares main memory is charged there, and seen here with what it uses.
        if job.node != node or (pool not in charges and pool not in job.devices) or not charges:
            continue
        charge = mapping(charges.get(pool))
        owner = f"job:{job.pk}"
        used = whole(measured[owner]) if owner in measured else whole(mapping(job.used).get(pool))
        found.append(Holder(job.pk, job.name, used, whole(charge.get("held")) or 0, whole(charge.get("margin")) or 0))
    return sorted(found, key=lambda h: h.job)


def kept(kind: str, total: int, margins: Iterable[int], knobs: Knobs) -> int:
    """Return the bytes held back on a pool, as the gate reckons them."""
    pool = Pool("", "", kind, "", declared=total, total=total, free=None, used=None)
    return reservations.kept(pool, margins, 0, knobs).kept


def fill(
    now: PoolNow | None,
    total: int | None,
    kind: str,
    inside: list[Holder],
    *,
    knobs: Knobs,
    sees_commands: bool,
) -> tuple[tuple[Layer, ...], tuple[Owner, ...], int | None]:
    """Return the layers, the legend and the bytes left (None where a part of the sum is unknown)."""
    layers: list[Layer] = []
    legend: list[Owner] = []
    at = 0.0

    def put(sort: str, colour: str, amount: int | None, title: str) -> None:
        nonlocal at
        if not amount or not total:
            return
        width = min(round(amount / total * 200) / 2, 100.0 - at)
        if width > 0:
            layers.append(Layer(sort, colour, at, width, title))
            at += width

    growth = 0
    for h in inside:
        more = max(0, h.held - (h.used or 0))
        growth += more
        label = f"#{h.job} {h.name}"
        figure = gib(steady(h.used)) if h.used is not None else "not measured"
        put("used", tone(h.job), h.used, f"{label}: {figure} used")
        put("growth", tone(h.job), more, f"{label}: {gib(more)} kept for it to grow")
        shown = gib(more) if more >= MIB else ""
        legend.append(Owner(tone(h.job), label, figure, shown, _exact(h.used), f"/jobs/{h.job}"))
    if now is not None:
        own = whole(mapping(now.owners).get(SERVICE))
        put("used", "self", own, f"Tidegate itself: {gib(own)}")
        if own:
            legend.append(Owner("self", "Tidegate itself", _about(own), title=_exact(own)))
        put("external", "ext", now.external, f"not ours: {gib(now.external)}")
        legend += _outsiders(now, sees_commands)
        for _, words, amount in hardware.left(now):
            put("unknown", "unk", amount, f"{words}: {gib(amount)}")
        rest = hardware.unexplained(now)
        put("unknown", "unk", rest, f"not explained by any process: {gib(rest)}")
    if total is None:
        return tuple(layers), tuple(legend), None
    back = kept(kind, total, (h.margin for h in inside), knobs)
    put("kept", "kept", back, f"{gib(back)} kept back")
    if now is None or now.free is None:
        return tuple(layers), tuple(legend), None
    return tuple(layers), tuple(legend), max(0, now.free - growth - back)


def booked(declared: int, inside: list[Holder]) -> tuple[tuple[Layer, ...], tuple[Owner, ...], int]:
    """Return the layers, the legend and the bytes left of a pool that nobody measures: what is known is booked."""
    layers, legend, at = [], [], 0.0
    for h in inside:
        label = f"#{h.job} {h.name}"
        width = min(round(h.held / declared * 200) / 2, 100.0 - at) if declared else 0.0
        if width > 0:
            layers.append(Layer("growth", tone(h.job), at, width, f"{label}: {gib(h.held)} booked, use not measured"))
            at += width
        legend.append(Owner(tone(h.job), label, f"{gib(h.held)} booked", title=_exact(h.held), href=f"/jobs/{h.job}"))
    return tuple(layers), tuple(legend), max(0, declared - sum(h.held for h in inside))


def _outsiders(now: PoolNow, sees_commands: bool) -> list[Owner]:
    """Return one line for each of the largest outsiders; command names of strangers are for operators."""
    lines = []
    for row in listing(now.external_who)[:3]:
        pid, user, name, amount = (*row, None, None, None, None)[:4]
        whose = f"{user}, pid {pid}" + (f", {name}" if sees_commands and name else "")
        lines.append(Owner("ext", f"not ours: {whose}", _about(whole(amount)), title=_exact(whole(amount))))
    if not lines and now.external is None and now.state == "ok":
        lines.append(Owner("ext", "not ours", "unknown (the driver names no sizes)"))
    elif not lines and now.external and now.external >= 64 * MIB:
        lines.append(Owner("ext", "not ours", _about(now.external), title=_exact(now.external)))
    lines += [Owner("unk", words, _about(amount), title=_exact(amount)) for _, words, amount in hardware.left(now)]
    rest = hardware.unexplained(now)
    if rest and rest >= 64 * MIB:
        lines.append(Owner("unk", "not explained by any process", _about(rest), title=_exact(rest)))
    return lines


def _about(amount: int | None) -> str:
    """Return an amount below a GiB in steps of 16 MiB: what others use wavers, and each waver would be news to all."""
    step = 16 * MIB
    return gib(amount if amount is None or amount < step or amount >= 1024 * MIB else amount // step * step)


def _exact(amount: int | None) -> str:
    return "unknown" if amount is None else f"{amount:,} bytes"


def size_of(model: str, total: int | None) -> str:
    """Return "RTX 4090 · 24.0 GiB", without the parts that are unknown."""
    return " · ".join(part for part in (model, gib(total) if total else "") if part)


def by_pool(rows: Iterable[PoolNow]) -> Mapping[tuple[str, str], PoolNow]:
    """Return the newest readings keyed by node and pool."""
    return {(row.node, row.pool): row for row in rows}
