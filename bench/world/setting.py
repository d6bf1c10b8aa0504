"""One replay's conditions: which rows, on what devices, with which disturbances; and one policy under them."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.world import submissions, synthetic
from bench.world.bounds import Bounds, bounds
from bench.world.engine import Policy, World
from bench.world.outsiders import visits
from bench.world.policies import POLICIES
from bench.world.product import Product
from bench.world.runs import Job
from bench.world.shapes import shape_of
from bench.world.submissions import Submission
from bench.world.tally import Tally
from calibration.domain.errors import BadKnob
from calibration.domain.knobs import Knobs as InstrumentKnobs
from placement.domain.knobs import Knobs

PRODUCT = "product"


@dataclass(frozen=True)
class Setting:
    """What every policy of one run meets. ``cap``: MiB a device; ``wrong`` 3: up to three times too long or short."""

    trace: str
    devices: int = 4
    cap: float = 24576.0
    stretch: float = 1.0
    limit: int = 0  # rows to replay, 0 for all
    shape: str = "trace"
    seed: int = 0
    gangs: bool = False
    interference: bool = False
    outsiders: int = 0
    both_die: bool = False
    wrong: float = 1.0
    edits: float = 0.0
    merged: bool = False
    per_process: bool = False
    knobs: Mapping[str, str] = field(default_factory=dict)

    def rows(self) -> list[Submission]:
        """Return the rows in order of arrival."""
        found = load(self.trace, self.cap)
        found = found[: self.limit] if self.limit else found
        found = submissions.stretched(found, self.stretch)
        found = found if self.gangs else submissions.split(found)
        if self.merged:
            found = [replace(row, key=row.script) for row in found]
        return edited(found, self.edits, self.seed)

    def jobs(self, rows: Sequence[Submission] | None = None) -> list[Job]:
        """Return jobs on which nothing has happened yet."""
        return [Job(row, shape_of(row, self.shape, self.seed)) for row in (self.rows() if rows is None else rows)]

    def bounds(self) -> Bounds:
        """Return what no policy can beat."""
        return bounds(self.jobs(), self.devices, self.cap)

    def policy(self, name: str) -> Policy:
        """Return a policy that has learned nothing yet."""
        doubts = Doubts(self.wrong, self.seed)
        if name == PRODUCT:
            ours, theirs = knobs(self.knobs)
            return Product(ours, theirs, per_process=self.per_process, doubt=doubts.of)
        if name not in POLICIES:
            raise ValueError(f"There is no policy {name!r}; there are {', '.join([PRODUCT, *POLICIES])}.")
        made = POLICIES[name](name)
        made.doubt = doubts.of
        return made

    def play(self, name: str) -> Tally:
        """Replay everything under one policy."""
        jobs = self.jobs()
        span = 3 * max(job.row.arrival for job in jobs) + 3 * sum(job.solo for job in jobs) / self.devices
        there = visits(self.outsiders, self.devices, self.cap, span) if self.outsiders else ()
        world = World(
            jobs,
            self.policy(name),
            self.devices,
            self.cap,
            interference=self.interference,
            visits=there,
            both_die=self.both_die,
        )
        return world.play()


@dataclass(slots=True)
class Doubts:
    """By what a job's predicted duration is wrong: the same factor whoever asks."""

    most: float
    seed: int
    _known: dict[int, float] = field(default_factory=dict)

    def of(self, job: Job) -> float:
        """Return the factor, between 1 ÷ ``most`` and ``most``."""
        if self.most <= 1:
            return 1.0
        if job.row.id not in self._known:
            rng = random.Random(f"{self.seed}:length:{job.row.id}")
            self._known[job.row.id] = math.exp(rng.uniform(-1, 1) * math.log(self.most))
        return self._known[job.row.id]


def load(trace: str, cap: float) -> list[Submission]:
    """Return the rows of a file, or of a generator: ``synthetic:SEED``, ``synthetic-shares:SEED``."""
    kind, _, seed = trace.partition(":")
    if kind in synthetic.KINDS:
        rows = synthetic.KINDS[kind](int(seed or 0))
        return submissions.in_order(submissions.cut(rows, cap))
    return submissions.read(Path(trace), cap)


def edited(rows: Sequence[Submission], percent: float, seed: int) -> list[Submission]:
    """Return the rows with sources edited before so many percent of the submissions of a script."""
    if not percent:
        return list(rows)
    rng = random.Random(f"{seed}:edits")
    editions: defaultdict[str, int] = defaultdict(int)
    found = []
    for row in rows:
        editions[row.script] += rng.random() * 100 < percent
        found.append(replace(row, edition=editions[row.script]))
    return found


def knobs(values: Mapping[str, str]) -> tuple[Knobs, InstrumentKnobs]:
    """Return both of the product's tables with these values in place; a name that is in both goes to both."""
    theirs = InstrumentKnobs.defaults()
    ours = {name: value for name, value in values.items() if name in Knobs.__dataclass_fields__}
    for name, value in values.items():
        if name in InstrumentKnobs.__dataclass_fields__:
            whole = isinstance(getattr(theirs, name), int)
            theirs = theirs.replace(**{name: int(value) if whole else float(value)})
        elif name not in ours:
            raise BadKnob(f"There is no knob {name!r}; docs/knobs.md lists them.")
    return Knobs.with_overrides(ours), theirs
