"""All that was learned or defined, a page at a time: how often it ran, what it needs, and whether guesses are off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Count, Max, Q, QuerySet, Sum

from calibration import rows
from calibration.domain import keys
from calibration.domain.resources import gib
from calibration.models import Known
from placement import estimates, snapshots
from placement.domain.admission.wire import estimate_json
from placement.domain.submitting import guesses
from placement.domain.submitting.guesses import Remark
from placement.models import Job, Workload
from placement.selectors import access, needs, subjects, wording, workload_runs
from placement.selectors.access import Role
from placement.selectors.needs import Need
from placement.selectors.subjects import Subject
from placement.selectors.workload_runs import Run

PAGE = 25
DOTS = 24  # peaks that a line draws
LOOKED_AT = 50  # newest runs of which a line tells spread, duration and guesses
ORDERS = {"recent": "last run", "name": "name", "runs": "runs", "failed": "failures"}
_BY = {
    "recent": ("-last", "subject"),
    "name": ("workload", "script", "subject"),
    "runs": ("-runs_", "subject"),
    "failed": ("-failed_", "-last", "subject"),
}
WHICH = {"all": "All", "named": "Named", "typed": "Typed", "mine": "Mine"}


@dataclass(frozen=True, slots=True)
class Line:
    """One workload or script. ``needs`` are those of its newest parameters; ``spread`` of what their runs used."""

    id: str
    title: str
    sub: str
    named: bool
    kinds: int
    runs: int
    failed: int
    last: datetime | None
    needs: tuple[Need, ...]
    spread: str
    usual: str
    remark: Remark | None
    dots: tuple[tuple[int, int, bool], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the list. ``waiting`` are workloads that nobody ran yet, on the first page."""

    lines: tuple[Line, ...]
    unrun: tuple[Line, ...]
    number: int
    more: bool
    anything: bool


def page(user: AbstractBaseUser, *, text: str = "", which: str = "all", order: str = "recent", number: int = 1) -> Page:
    """Return one page; counts are aggregates over one row per key, figures are read for what is shown alone."""
    found = _filtered(user, text, which)
    counted = found.values("subject", "workload", "script").annotate(
        runs_=Sum("runs"), failed_=Sum("failed"), last=Max("last_at"), kinds=Count("pk")
    )
    start = (number - 1) * PAGE
    shown = list(counted.order_by(*_BY[order])[start : start + PAGE + 1])
    version = rows.version()
    lines = tuple(
        _line(
            user,
            subjects.of(one["workload"], one["script"], one["subject"]),
            (one["runs_"], one["failed_"], one["last"], one["kinds"]),
            version,
        )
        for one in shown[:PAGE]
    )
    unrun = _unrun(user, text) if number == 1 and which in ("all", "named") else ()
    anything = bool(lines or unrun) or Known.objects.exists() or Workload.objects.exists()
    return Page(lines, unrun, number, len(shown) > PAGE, anything)


def _filtered(user: AbstractBaseUser, text: str, which: str) -> QuerySet[Known]:
    found = Known.objects.all()
    named = Q(script__startswith=subjects.NAMED)
    if which == "named":
        found = found.filter(named)
    elif which == "typed":
        found = found.exclude(named)
    elif which == "mine":
        found = found.exclude(named).filter(workload__startswith=f"{user.get_username()}: ")
    if text:
        path = Q(script__icontains=text[:200])
        if not access.at_least(user, Role.OPERATOR):  # folders of others are not for guessing
            path &= named | Q(workload__startswith=f"{user.get_username()}: ")
        found = found.filter(Q(workload__icontains=text[:200]) | path)
    return found


def _unrun(user: AbstractBaseUser, text: str) -> tuple[Line, ...]:
    found = Workload.objects.select_related("owner").order_by("name")
    if text:
        found = found.filter(Q(name__icontains=text[:100]) | Q(summary__icontains=text[:200]))
    names = {keys.named(row.name): row for row in found}
    ran = set(Known.objects.filter(subject__in=names).values_list("subject", flat=True))
    return tuple(
        _line(user, Subject(ident, row.name, subjects.NAMED + row.name, True, row), (0, 0, None, 0), rows.version())
        for ident, row in names.items()
        if ident not in ran
    )


def _line(
    user: AbstractBaseUser, subject: Subject, counts: tuple[int, int, datetime | None, int], version: int
) -> Line:
    times, failed, last, kinds = counts
    known = Known.objects.filter(subject=subject.id).order_by("-last_at").first()
    params = known.params if known else "{}"
    runs = workload_runs.runs(workload_runs.of_key(subject.workload, subject.script, params), LOOKED_AT)
    gpu = device_of(subject, runs)
    job = subjects.draft(
        subject, params, runs[0].row.key.workers if runs else 1, gpu, runs[0].row.key.fingerprint if runs else ""
    )
    estimate = estimate_json(estimates.estimate_of(job, version, snapshots.knobs_now()[1]))
    main = "vram" if gpu != "none" else "ram"
    return Line(
        id=subject.id,
        title=subjects.called(user, subject, params),
        sub=_sub(user, subject, params),
        named=subject.named,
        kinds=kinds,
        runs=times,
        failed=failed,
        last=last,
        needs=needs.of_next(estimate, subject.definition),
        spread=spread(runs, main),
        usual=usual(runs),
        remark=next((r for k in ("vram", "ram") if (r := remark(subject, runs, k)) is not None), None),
        dots=dots(runs, main),
    )


def device_of(subject: Subject, runs: Sequence[Run]) -> str:
    """Return "one" or "none": what the last run had, else what the definition says."""
    last = next((run for run in runs if run.job is not None), None)
    used = Job.objects.filter(pk=last.job).values_list("gpu", flat=True).first() if last else None
    return used or (subject.definition.gpu if subject.definition else "none")


def spread(runs: Sequence[Run], kind: str) -> str:
    """Return "8.7 to 9.1 GiB": what completed runs used, without forgotten and odd ones; "" where none was seen."""
    peaks = [r.row.peaks[kind] for r in _typical(runs) if r.row.completed and kind in r.row.peaks]
    if not peaks:
        return ""
    low, high = gib(min(peaks)), gib(max(peaks))
    return low if low == high else f"{low} to {high}"


def dots(runs: Sequence[Run], kind: str) -> tuple[tuple[int, int, bool], ...]:
    """Return the newest peaks as (x, y, counts) in a box of 120 by 24, the newest at the right, zero at the bottom."""
    shown = [(r, r.row.peaks[kind]) for r in runs[:DOTS] if r.row.peaks.get(kind)]
    most = max((peak for _, peak in shown), default=0)
    step = 114 / max(DOTS - 1, 1)
    return tuple(
        (round(117 - n * step), round(21 - 18 * peak / most), r.row.completed and not (r.forgotten or r.row.atypical))
        for n, (r, peak) in enumerate(shown)
    )


def usual(runs: Sequence[Run]) -> str:
    """Return how long a completed run takes, by the middle one; "" where none was seen."""
    seconds = [r.row.duration for r in _typical(runs) if r.row.completed and r.row.duration]
    return wording.span(median(seconds)) if seconds else ""


def remark(subject: Subject, runs: Sequence[Run], kind: str) -> Remark | None:
    """Return what to say of guesses for one kind of memory: the submitters', else the author's preset."""
    found = workload_runs.guesses(runs, kind)
    said = guesses.remark(found)
    preset = getattr(subject.definition, f"hint_{kind}", None)
    return said or (guesses.remark(found, "its preset says", preset) if preset else None)


def _typical(runs: Sequence[Run]) -> list[Run]:
    return [run for run in runs if not run.forgotten and not run.row.atypical]


def _sub(user: AbstractBaseUser, subject: Subject, params: str) -> str:
    sees = subjects.sees_typed(user, subject)
    if subject.named:
        row = subject.definition
        if row is None:
            return "not defined any more"
        return row.summary or (row.command.strip().splitlines()[0][:120] if sees else "")
    rest = (subject.script or subjects.directory_of(subject, params)) if sees else ""
    return f"{subject.runner} · {subject.program}" + (f" · {rest}" if rest not in ("", subject.program) else "")
