"""The page of one workload or script: what was learned of it, and what its next run would be charged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser

from calibration import rows
from calibration.domain.estimate import Estimate
from calibration.domain.keys import workload_key
from calibration.domain.ladder import Basis
from calibration.domain.resources import gib
from calibration.domain.standing import Standing
from calibration.models import Known, Pin
from placement import estimates, snapshots
from placement.domain.admission.demands import promised
from placement.domain.admission.wire import estimate_json
from placement.domain.leasing import cycles_text
from placement.domain.submitting.guesses import Remark
from placement.domain.world.known_asks import from_json
from placement.domain.world.requests import Gpu, Request
from placement.models import AskedLater, AuditEntry, Workload
from placement.selectors import ladder, needs, subjects, wording, workload_runs, workloads
from placement.selectors.ladder import Ladder
from placement.selectors.needs import Need
from placement.selectors.subjects import KeyRow, Subject
from placement.selectors.workload_runs import KINDS, Run, RunRow

MOST_WORKERS = 10_000
DRAWN = 24  # worker counts of which the need is drawn
RECORD_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Learned:
    """All that is read once for a page, its figures and its table: runs of one key, and what the next stands on."""

    subject: Subject
    params: str
    digest: str
    runs: tuple[Run, ...]
    kinds: tuple[str, ...]
    gpu: str
    sources: str

    def standings(self, kind: str) -> dict[int, Standing]:
        """Return how each run stands, by its id."""
        return workload_runs.stand(self.runs, kind, self.sources, snapshots.knobs_now()[1])

    def estimate(self, workers: int) -> Estimate:
        """Return what a run with so many workers would need."""
        job = subjects.draft(self.subject, self.params, workers, self.gpu, self.sources)
        return estimates.estimate_of(job, rows.version(), snapshots.knobs_now()[1])

    def charged(self, workers: int) -> Estimate:
        """Return what such a run would be charged: what its definition reserves exactly, else what was learned."""
        found, row = self.estimate(workers), self.subject.definition
        said = (row.placement or {}) if row else {}
        if row is None or said.get("memory") != "exact":
            return found
        names = ("min_devices", "max_devices", "prefer_max", "per_device_memory", "group_memory", "even")
        return promised(Request(Gpu(row.gpu), **{name: said[name] for name in names if name in said}), found)

    @property
    def workers(self) -> int:
        """Return the workers of the last run."""
        if self.runs:
            return self.runs[0].row.key.workers
        return self.subject.definition.workers if self.subject.definition else 1


@dataclass(frozen=True, slots=True)
class Charge:
    """What the next run would be charged. ``edited``: its files changed since the last one."""

    workers: int
    needs: tuple[Need, ...]
    beside: str
    ladders: tuple[Ladder, ...]
    edited: bool


@dataclass(frozen=True, slots=True)
class PinRow:
    """A pinned need. ``whole``: it stands for all of the program, not for this script alone."""

    kind: str
    word: str
    amount: str
    who: str
    at: datetime
    whole: bool


@dataclass(frozen=True, slots=True)
class AskedFor:
    """What a run asked for while it ran, and when one last did."""

    words: str
    seen: datetime


@dataclass(frozen=True, slots=True)
class Table:
    """A page of runs."""

    lines: tuple[RunRow, ...]
    older: int | None
    first: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """Figures beside the charts."""

    counting: int
    retired: int
    spread: tuple[tuple[str, str], ...]
    usual: str
    remarks: tuple[tuple[str, Remark], ...]


def learned(subject: Subject, digest: str = "") -> Learned | None:
    """Return what is known of one set of parameters, the newest where none is named; None for one that never ran."""
    known = Known.objects.filter(subject=subject.id).order_by("-last_at")
    chosen = (known.filter(params_digest=digest) if digest else known).first()
    if digest and chosen is None:
        return None
    params = chosen.params if chosen else _unrun(subject.definition)
    runs = workload_runs.runs(workload_runs.of_key(subject.workload, subject.script, params))
    gpu = workloads.device_of(subject, runs)
    seen = {kind for run in runs for kind in run.row.peaks}
    kinds = tuple(k for k in KINDS if k in seen or k == "ram" or (k == "vram" and gpu != "none"))
    sources = subjects.sources_now(subject, subjects.newest(subject, params))
    if "vram" in kinds:
        gpu = "one"
    return Learned(subject, params, chosen.params_digest if chosen else "", runs, kinds, gpu, sources)


def charge(found: Learned, workers: int) -> Charge:
    """Return what a run with so many workers would be charged."""
    estimate = estimate_json(found.charged(workers))
    margins = [
        f"{gib(margin)} {KINDS[kind]}"
        for kind in found.kinds
        if (margin := wording.whole(wording.mapping(estimate["pools"].get(kind)).get("margin")))
    ]
    return Charge(
        workers=workers,
        needs=needs.of_next(estimate, found.subject.definition),
        beside=f"{' and '.join(margins)} must stay free beside it" if margins else "",
        ladders=ladder.ladders(estimate),
        edited=bool(found.runs) and found.runs[0].row.key.fingerprint != found.sources,
    )


def curve(found: Learned, kind: str) -> list[tuple[int, int | None, int | None, str]]:
    """Return (workers, need, margin, rung) over worker counts: the line that the next run is charged by."""
    seen = sorted({run.row.key.workers for run in found.runs if not run.forgotten})
    top = max(4, (seen[-1] if seen else 1) * 3 // 2)
    step = max(1, -(-top // DRAWN))
    counts = sorted({*range(1, top + 1, step), *seen[-DRAWN:]})
    drawn = []
    for count in counts:
        pool = found.estimate(count).pools.get(kind)
        if pool is not None and pool.basis > Basis.COLD_START:
            drawn.append((count, pool.need, pool.margin, wording.rung(pool.basis.word)))
    return drawn


def facts(found: Learned, kind: str) -> Facts:
    """Return what stands beside the charts."""
    told = list(found.standings(kind).values())
    remarks = [(KINDS[k], said) for k in found.kinds if (said := workloads.remark(found.subject, found.runs, k))]
    spreads = [(KINDS[k], text) for k in found.kinds if (text := workloads.spread(found.runs, k))]
    return Facts(
        counting=sum(s is Standing.COUNTS for s in told),
        retired=sum(s.retired for s in told),
        spread=tuple(spreads),
        usual=workloads.usual(found.runs),
        remarks=tuple(remarks),
    )


def table(found: Learned, kind: str, before: int | None) -> Table:
    """Return a page of its runs, newest first."""
    kept = workload_runs.of_key(found.subject.workload, found.subject.script, found.params)
    shown, older = workload_runs.page(kept, before)
    told = found.standings(kind)
    return Table(tuple(workload_runs.line(r, told.get(r.id), found.kinds) for r in shown), older, before is None)


def pins(subject: Subject, kinds: Sequence[str]) -> tuple[PinRow, ...]:
    """Return what is pinned for it, of this script alone and of all of its program."""
    found = Pin.objects.filter(workload=subject.workload, subject__in=("", subject.id)).order_by("-subject", "kind")
    return tuple(
        PinRow(p.kind, KINDS.get(p.kind, p.kind), gib(p.bytes), p.who, p.at, not p.subject and not subject.named)
        for p in found
    )


def keys(user: AbstractBaseUser, subject: Subject) -> tuple[KeyRow, ...]:
    """Return the sets of parameters to choose from, as this user may see them."""
    return subjects.params(subject, sees=subjects.sees_typed(user, subject))


def record(subject: Subject) -> tuple[AuditEntry, ...]:
    """Return who last defined, pinned or forgot something of this workload."""
    found = AuditEntry.objects.filter(subject=f"workload {subject.workload}"[:200]).order_by("-id")
    return tuple(found[:RECORD_SHOWN])


def later(subject: Subject) -> tuple[AskedFor, ...]:
    """Return what its runs are known to ask for while they run, the newest first."""
    row = AskedLater.objects.filter(subject=subject.id).first()
    found = from_json(row.asks) if row is not None else ()
    return tuple(AskedFor(cycles_text.wish(one.ask), datetime.fromtimestamp(one.seen_at, UTC)) for one in found)


def _unrun(row: Workload | None) -> str:
    """Return the parameters under which a first run with all defaults would be learned."""
    if row is None:
        return "{}"
    values: dict[str, Any] = {p["name"]: str(p.get("default", "")) for p in row.parameters}
    matters = frozenset(p["name"] for p in row.parameters if p.get("matters", True))
    return workload_key(row.name, values, matters).params
