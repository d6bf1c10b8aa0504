"""What a run is learned under and what it taught, as the job page shows it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from calibration.domain.keys import typed_command_key
from calibration.domain.resources import gib
from calibration.models import Sediment
from placement.domain.submitting.taken import Kind
from placement.models import IrrelevantArgument, Job
from placement.selectors.wording import mapping, whole

LOOKS = {
    "path": "looks like a path",
    "seed": "looks like a seed",
    "name": "looks like a name",
    "date": "looks like a date",
}


@dataclass(frozen=True, slots=True)
class ArgumentRow:
    """One argument of a typed command; ``hint`` says why it may not matter to memory."""

    name: str
    text: str
    hint: str
    matters: bool


@dataclass(frozen=True, slots=True)
class Taught:
    """What an ended run left for estimates; ``marked`` says who took it out, when."""

    peaks: str
    counts: bool
    atypical: bool
    forgotten: bool
    marked_by: str
    marked_at: datetime | None


def arguments(job: Job) -> tuple[ArgumentRow, ...]:
    """Return the arguments that a typed command is learned under, none for a workload, nor for a hold."""
    if job.workload_id or not job.key_script or job.kind == Kind.HOLD:
        return ()
    text = shlex.join(str(part) for part in job.argv) if job.argv else job.command
    marked = frozenset(IrrelevantArgument.objects.filter(script=job.key_script).values_list("argument", flat=True))
    key = typed_command_key(job.user.get_username(), text, job.setup, job.cwd, job.workers, marked, job.image or "")
    return tuple(ArgumentRow(a.name, a.text, LOOKS.get(a.looks_like or "", ""), a.matters) for a in key.arguments)


def as_json(job: Job) -> dict[str, Any] | None:
    """Return the same as taught() for the API: peaks in bytes, null where unknown."""
    row = Sediment.objects.filter(owner=f"job:{job.pk}").first()
    if row is None:
        return None
    peaks = mapping(row.peaks)
    return {
        "ram": whole(peaks.get("ram")),
        "vram": whole(peaks.get("vram")),
        "counts": not (row.atypical or row.forgotten),
        "atypical": row.atypical,
        "forgotten": row.forgotten,
        "marked_by": row.marked_by or None,
        "marked_at": row.marked_at,
    }


def taught(job: Job) -> Taught | None:
    """Return what an ended job taught, None where it taught nothing."""
    row = Sediment.objects.filter(owner=f"job:{job.pk}").first()
    if row is None:
        return None
    words = {"ram": "RAM", "vram": "device"}
    peaks = [f"{words.get(kind, kind)} {gib(whole(peak))}" for kind, peak in sorted(mapping(row.peaks).items())]
    told = f" ({row.lower_bound_note})" if row.by_kernel else ""
    return Taught(
        peaks=(", ".join(peaks) or "a lower bound only") + told,
        counts=not (row.atypical or row.forgotten),
        atypical=row.atypical,
        forgotten=row.forgotten,
        marked_by=row.marked_by,
        marked_at=row.marked_at,
    )
