"""What a followed trace left at the service: the jobs' own lines, and the rows of the database."""

from __future__ import annotations

import json
import sqlite3
import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from bench.bare import quantile
from bench.follow.figures import Course, Done
from bench.world.submissions import Submission

JOBS = """
SELECT id, name, outcome, coalesce(json_extract(evidence, '$.watchdog'), ''),
       device, charges, (julianday(submitted_at) - 2440587.5) * 86400.0, (julianday(admitted_at) - 2440587.5) * 86400.0,
       (julianday(ended_at) - 2440587.5) * 86400.0
FROM placement_job ORDER BY id
"""


class Line(NamedTuple):
    """One line of a job: began, died or ended, at a wall second."""

    word: str
    row: int
    job: int
    attempt: int
    at: float


class Stored(NamedTuple):
    """One job of the database; wall seconds."""

    job: int
    row: int
    outcome: str
    watchdog: str
    device: str
    charges: str
    submitted: float
    admitted: float | None
    ended: float


def lines(text: str) -> list[Line]:
    """Return the whole lines of the jobs' ledger."""
    found = []
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):
            word, row, job, attempt, at = line.split()
            found.append(Line(word, int(row), int(job), int(attempt), float(at)))
    return found


def open_now(text: str) -> set[int]:
    """Return the jobs that began and have not ended."""
    told = lines(text)
    return {line.job for line in told if line.word == "began"} - {line.job for line in told if line.word != "began"}


def twice(told: Sequence[Line], outcomes: dict[int, str]) -> list[int]:
    """Return the rows of which a job's command began more than once, or more than one job ended well."""
    began = Counter(line.job for line in told if line.word == "began")
    row_of = {line.job: line.row for line in told}
    well = Counter(row_of[job] for job, outcome in outcomes.items() if outcome == "completed" and job in row_of)
    again = {row_of[job] for job, times in began.items() if times > 1}
    return sorted(again | {row for row, times in well.items() if times > 1})


def stored(data: Path) -> list[Stored]:
    """Return the jobs of the database, oldest first."""
    with closing(sqlite3.connect(f"file:{data}/tidegate.sqlite3?mode=ro", uri=True, timeout=10)) as base:
        rows = base.execute(JOBS).fetchall()
    return [Stored(job, int(name.removeprefix("row ")), *rest) for job, name, *rest in rows]


def course(name: str, rows: Sequence[Submission], zero: float, data: Path, text: str) -> Course:
    """Return what came of the rows; ``zero`` is the wall second of the trace's second 0."""
    jobs, told = stored(data), lines(text)
    began: dict[int, float] = {}
    for line in told:
        if line.word == "began":
            began[line.row] = min(line.at, began.get(line.row, line.at))
    ended = {job.row: job.ended for job in jobs if job.outcome == "completed"}
    done = [
        Done(
            row.id,
            row.arrival,
            _since(zero, began.get(row.id)),
            _since(zero, ended.get(row.id)),
            tuple(_grant(job) for job in jobs if job.row == row.id and job.device),
        )
        for row in rows
    ]
    starts = _starts(jobs, told)
    kills = Counter(_kill(job) for job in jobs if job.outcome != "completed")
    return Course(
        name,
        done,
        dict(kills),
        start=statistics.median(starts) if starts else 0.0,
        reaction=_reaction(jobs),
        tardy=(quantile(_submitted(jobs, rows, zero), 0.95), quantile(starts, 0.95)) if starts else (0.0, 0.0),
        twice=twice(told, {job.job: job.outcome for job in jobs}),
    )


def _since(zero: float, at: float | None) -> float | None:
    return None if at is None else at - zero


def _grant(job: Stored) -> tuple[int, int, str]:
    """Return device, MiB and basis of a job's run; a simulated device's name ends with its number."""
    charge = json.loads(job.charges)[job.device]
    return int(job.device.rpartition("-")[2]), charge["at_start"] >> 20, charge["basis"]


def _kill(job: Stored) -> str:
    if job.outcome == "cap_exceeded":
        return "watchdog" if job.watchdog else "cap"
    return "oom" if job.outcome == "out_of_memory" else job.outcome


def _starts(jobs: Sequence[Stored], told: Sequence[Line]) -> list[float]:
    """Return the seconds from each grant to its command's first line."""
    began = {line.job: line.at for line in told if line.word == "began"}
    return [began[job.job] - job.admitted for job in jobs if job.admitted is not None and job.job in began]


def _submitted(jobs: Sequence[Stored], rows: Sequence[Submission], zero: float) -> list[float]:
    """Return the seconds from when a row was to come until its first job was on record."""
    at: dict[int, float] = {}
    for job in jobs:
        at.setdefault(job.row, job.submitted)
    return [at[row.id] - zero - row.arrival for row in rows if row.id in at]


def _reaction(jobs: Sequence[Stored]) -> float:
    """Return the median seconds from the newest submission or end to the grant that followed it."""
    events = sorted([*(job.submitted for job in jobs), *(job.ended for job in jobs)])
    took = []
    for job in jobs:
        before = bisect_right(events, job.admitted) if job.admitted is not None else 0
        if before and job.admitted is not None:
            took.append(job.admitted - events[before - 1])
    return statistics.median(took) if took else 0.0
