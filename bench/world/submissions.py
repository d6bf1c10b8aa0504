"""What is replayed: rows of a trace, as they were submitted. Sizes in MiB, times in seconds."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Submission:
    """One row. ``steady`` and ``spike`` are shares: of the peak, and of the work done when the peak comes.

    ``declared`` 0 means that the submitter said nothing. ``edition`` counts source edits before this submission.
    """

    id: int
    arrival: float
    duration: float
    devices: int
    key: str
    peak: float
    ram: float
    declared: float
    util: float
    load: float
    steady: float = 0.92
    spike: float = 0.0
    edition: int = 0

    @property
    def script(self) -> str:
        """Return what the key is an instance of: the part before its arguments."""
        return self.key.partition(":")[0]


COLUMNS = {
    "job_id": "id",
    "arrival_s": "arrival",
    "duration_s": "duration",
    "n_gpus": "devices",
    "key": "key",
    "peak_vram_mb": "peak",
    "ram_mb": "ram",
    "declared_vram_mb": "declared",
    "util": "util",
    "load_s": "load",
    "steady_frac": "steady",
    "spike_frac": "spike",
}
"""Columns of a trace file and what they are called here."""

_WHOLE = {"id", "devices"}


def read(path: Path, capacity: float) -> list[Submission]:
    """Return the rows of a trace file, peaks and declarations cut to what one device has."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    missing = set(COLUMNS) - set(rows[0] if rows else COLUMNS)
    if missing:
        raise ValueError(f"{path} lacks the columns {', '.join(sorted(missing))}; it needs {', '.join(COLUMNS)}.")
    return in_order(cut((_row(row) for row in rows), capacity))


def _row(row: dict[str, str]) -> Submission:
    facts: dict[str, object] = {}
    for column, name in COLUMNS.items():
        text = row[column]
        facts[name] = text if name == "key" else int(text) if name in _WHOLE else float(text)
    return Submission(**facts)  # type: ignore[arg-type]  # each column was read in its own type


def write(path: Path, rows: Iterable[Submission]) -> None:
    """Write rows as a trace file."""
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(COLUMNS)
        out.writerows([getattr(row, name) for name in COLUMNS.values()] for row in rows)


def cut(rows: Iterable[Submission], capacity: float) -> Iterator[Submission]:
    """Yield rows whose peak and declaration are no more than one device has."""
    for row in rows:
        yield replace(row, peak=min(row.peak, capacity), declared=min(row.declared, capacity))


def in_order(rows: Iterable[Submission]) -> list[Submission]:
    """Return rows in the order in which they arrive."""
    return sorted(rows, key=lambda row: (row.arrival, row.id))


def stretched(rows: Iterable[Submission], factor: float) -> list[Submission]:
    """Return rows that arrive over ``factor`` times the span."""
    return [replace(row, arrival=row.arrival * factor) for row in rows]


def split(rows: Iterable[Submission]) -> list[Submission]:
    """Return one row of one device for each device that a row asks for, all arriving together."""
    alone: list[Submission] = []
    for row in rows:
        for _ in range(row.devices):
            alone.append(replace(row, id=len(alone), devices=1))
    return alone
