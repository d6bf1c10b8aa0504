"""Runs of one key as its page shows them: newest first, each with what it used and whether it counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from calibration import rows
from calibration.domain.knobs import Knobs
from calibration.domain.resources import gib
from calibration.domain.sediment import Key, Row
from calibration.domain.standing import SAID, Kept, Standing, standings
from calibration.models import Sediment
from placement.domain.submitting.guesses import Guess
from placement.models import Job
from placement.selectors import wording
from placement.selectors.wording import mapping, whole

PAGE = 25
PLOTTED = 500  # runs that one chart draws, and among which a standing is told
KINDS = {"vram": "device memory", "ram": "RAM"}
SHORT = {"vram": "device", "ram": "RAM"}  # in a column of figures


@dataclass(frozen=True, slots=True)
class Run:
    """One kept run. Bytes; ``declared`` is what its submitter guessed, ``job`` None for what was no job of ours."""

    id: int
    job: int | None
    at: datetime
    row: Row
    forgotten: bool
    marked_by: str
    marked_at: datetime | None


@dataclass(frozen=True, slots=True)
class RunRow:
    """One line of the table, for the kind of memory that is looked at first."""

    id: int
    job: int | None
    at: datetime
    workers: int
    peaks: tuple[tuple[str, str, str], ...]
    charged: tuple[tuple[str, str], ...]
    took: str
    outcome: str
    tone: str
    standing: str
    counts: bool
    retired: bool
    why: str
    marked: bool
    marked_by: str
    marked_at: datetime | None


def of_key(workload: str, script: str, params: str) -> QuerySet[Sediment]:
    """Return the rows of a key, newest first; what is typed for a shell shares its script with nobody."""
    return rows.of_key(workload, params).filter(script=script)


def runs(found: QuerySet[Sediment], most: int | None = None) -> tuple[Run, ...]:
    """Return the newest runs, as many as are plotted where no number is given."""
    return tuple(_run(s) for s in found[: PLOTTED if most is None else most])


def page(found: QuerySet[Sediment], before: int | None) -> tuple[tuple[Run, ...], int | None]:
    """Return a page of runs that ended before the run ``before``, and where the next page begins."""
    if before is not None:
        last = Sediment.objects.filter(pk=before).values_list("at", flat=True).first()
        if last is not None:
            found = found.filter(Q(at__lt=last) | Q(at=last, pk__lt=before))
    shown = [_run(s) for s in found.order_by("-at", "-pk")[: PAGE + 1]]
    return tuple(shown[:PAGE]), shown[PAGE - 1].id if len(shown) > PAGE else None


def stand(of: Sequence[Run], kind: str, sources: str, knobs: Knobs) -> dict[int, Standing]:
    """Return how each run stands, by its id."""
    told = standings([Kept(r.row, r.forgotten) for r in of], kind, sources, knobs)
    return {run.id: standing for run, standing in zip(of, told, strict=True)}


def guesses(of: Sequence[Run], kind: str) -> list[Guess]:
    """Return what was declared for these runs against what they used; forgotten and odd ones are left out."""
    shown = [r for r in of if r.job is not None and not r.forgotten and not r.row.atypical]
    said = dict(Job.objects.filter(pk__in=[r.job for r in shown]).values_list("pk", f"declared_{kind}"))
    return [Guess(said.get(r.job), r.row.peaks.get(kind), r.row.completed) for r in shown]


def line(run: Run, standing: Standing | None, kinds: Sequence[str]) -> RunRow:
    """Return a run as its line; of runs beyond those that are looked at the mark is told, else they are "older"."""
    stands = standing or _marked(run)
    peaks = tuple((SHORT[k], *_amount(whole(run.row.peaks.get(k)))) for k in kinds)
    charged = tuple((gib(n), SHORT[k]) for k in kinds if (n := whole(run.row.charge.get(k))) is not None)
    return RunRow(
        id=run.id,
        job=run.job,
        at=run.at,
        workers=run.row.key.workers,
        peaks=peaks,
        charged=charged,
        took=wording.span(run.row.duration) if run.row.duration else "–",
        outcome=wording.OUTCOMES.get(run.row.outcome, run.row.outcome.replace("_", " ")),
        tone=wording.outcome_tone(run.row.outcome),
        standing=stands.value,
        counts=stands is Standing.COUNTS,
        retired=stands.retired,
        why=SAID[stands],
        marked=stands in (Standing.ATYPICAL, Standing.FORGOTTEN),
        marked_by=run.marked_by,
        marked_at=run.marked_at,
    )


def _marked(run: Run) -> Standing:
    if run.forgotten:
        return Standing.FORGOTTEN
    return Standing.ATYPICAL if run.row.atypical else Standing.OLDER


def _amount(amount: int | None) -> tuple[str, str]:
    return ("–", "not seen") if amount is None else (gib(amount), f"{amount:,} bytes")


def _run(s: Sediment) -> Run:
    number = s.owner.removeprefix("job:")
    row = Row(
        key=Key(s.workload, s.fingerprint, s.params, s.script, s.workers),
        completed=s.completed,
        outcome=s.outcome,
        peaks=mapping(s.peaks),
        duration=s.duration,
        charge=mapping(s.charge),
        next_charge=mapping(s.next_charge),
        lower_bound_note=s.lower_bound_note,
        preallocated=s.preallocated,
        by_kernel=bool(s.by_kernel),
        atypical=s.atypical,
        at=s.at.timestamp(),
    )
    job = int(number) if number.isdecimal() and s.owner.startswith("job:") else None
    return Run(s.pk, job, s.at, row, s.forgotten, s.marked_by, s.marked_at)
