"""Walks a trace in order of arrival: what would each rule have guessed before each run, and what did the run take?

The product is asked through its own code: each run is seen once a second by a window, the window is closed into a row,
and ``estimate`` reads the rows that it would be given. Sizes in MiB.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from bench.world.shapes import Shape, shape_of
from bench.world.submissions import Submission
from calibration.domain.estimate import Basis, PoolEstimate, estimate
from calibration.domain.knobs import DEFAULTS, Knobs
from calibration.domain.resources import MIB
from calibration.domain.sediment import Key, Row
from calibration.domain.windows import Window, close, observe

NEWEST = 400
"""Rows that the product reads per key, and per script (calibration/rows.py)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One submission as it is asked about: its key, and the most that it will really need."""

    row: Submission
    key: Key
    need: float


@dataclass(slots=True)
class History:
    """What was seen before: rows by key and by script, newest last, and the peaks under one name."""

    by_key: defaultdict[tuple[str, str], list[Row]]
    by_script: defaultdict[str, list[Row]]

    @classmethod
    def empty(cls) -> History:
        """Return a history without a run."""
        return cls(defaultdict(list), defaultdict(list))

    def rows(self, key: Key) -> list[Row]:
        """Return the rows that the product would read for a key, each once."""
        found = {id(row): row for row in self.by_key[key.workload, key.params][-NEWEST:]}
        if key.script:
            found |= {id(row): row for row in self.by_script[key.script][-NEWEST:]}
        return list(found.values())

    def peaks(self, key: Key) -> list[float]:
        """Return the peaks seen under the same name and arguments, oldest first, whatever the sources."""
        return [row.peaks["vram"] / MIB for row in self.by_key[key.workload, key.params] if "vram" in row.peaks]

    def add(self, row: Row) -> None:
        """Remember a run."""
        self.by_key[row.key.workload, row.key.params].append(row)
        self.by_script[row.key.script].append(row)


Rule = Callable[[History, Asked], float | None]


def of_peaks(function: Callable[[list[float]], float]) -> Rule:
    """Return a rule that knows nothing but earlier peaks of the key; None before the first."""

    def rule(history: History, asked: Asked) -> float | None:
        peaks = history.peaks(asked.key)
        return function(peaks) if peaks else None

    return rule


def quantile(peaks: Sequence[float], share: float) -> float:
    """Return the smallest peak that this share of them does not exceed."""
    return sorted(peaks)[max(0, math.ceil(share * len(peaks)) - 1)]


def _two_sigma(peaks: list[float]) -> float:
    mean = sum(peaks) / len(peaks)
    return mean + 2 * math.sqrt(sum((peak - mean) ** 2 for peak in peaks) / len(peaks))


OTHERS: dict[str, Rule] = {
    "90 % quantile of 50 + 64": of_peaks(lambda peaks: quantile(peaks[-50:], 0.9) + 64),
    "largest + 512": of_peaks(lambda peaks: max(peaks) + 512),
    "largest + 1,500": of_peaks(lambda peaks: max(peaks) + 1500),
    "last run": of_peaks(lambda peaks: peaks[-1]),
    "mean + 2 sigma": of_peaks(_two_sigma),
    "declared": lambda history, asked: asked.row.declared or None,
}
"""Rules to compare with. They know the key by its name alone, so an edit changes nothing for them."""


@dataclass(frozen=True, slots=True)
class Guess:
    """What one rule said of one run. ``runs``: completed runs of the key before it; ``basis``: the product's rung."""

    guess: float | None
    need: float
    runs: int
    basis: str

    @property
    def error(self) -> float:
        """Return by what share of the need the guess was off: below zero when it was too low by a MiB or more."""
        assert self.guess is not None
        return 0.0 if abs(self.guess - self.need) < 1 else self.guess / self.need - 1


@dataclass(frozen=True, slots=True)
class Figures:
    """How good guesses were: shares of one. ``surplus`` is what was kept in vain, as a share of all that was needed."""

    count: int
    median: float
    low: float
    far_low: float
    surplus: float


def figures(guesses: Iterable[Guess]) -> Figures | None:
    """Return the figures of those that were guesses at all, None when there are none."""
    made = [guess for guess in guesses if guess.guess is not None]
    if not made:
        return None
    errors = sorted(abs(guess.error) for guess in made)
    half = len(errors) // 2
    median = errors[half] if len(errors) % 2 else (errors[half - 1] + errors[half]) / 2
    return Figures(
        len(made),
        median,
        sum(guess.error < 0 for guess in made) / len(made),
        sum(guess.error < -0.1 for guess in made) / len(made),
        sum(max(0.0, guess.error) * guess.need for guess in made) / sum(guess.need for guess in made),
    )


def asked_of(
    rows: Sequence[Submission], seed: int, edits: float, moves: float = 0.0, merged: bool = False
) -> list[tuple[Asked, Shape]]:
    """Return each submission with its key and its memory.

    Before a share ``edits`` of the submissions somebody edits the script; a share ``moves`` of the edits changes what
    the script needs for good, by about a fifth. ``merged``: arguments are not part of the key.
    """
    rng = random.Random(f"{seed}:edits")
    edition: defaultdict[str, int] = defaultdict(int)
    factor: defaultdict[str, float] = defaultdict(lambda: 1.0)
    found = []
    for row in rows:
        if rng.random() < edits:
            edition[row.script] += 1
            if rng.random() < moves:
                factor[row.script] *= math.exp(rng.gauss(0, 0.2))
        moved = replace(row, peak=row.peak * factor[row.script], edition=edition[row.script])
        drawn = shape_of(moved, "trace", seed)
        params = row.script if merged else row.key
        key = Key(f"ann: {row.script}", str(edition[row.script]), params, row.script)
        found.append((Asked(moved, key, drawn.peak), drawn))
    return found


def row_of(asked: Asked, shape: Shape, wall: float, knobs: Knobs = DEFAULTS) -> Row | None:
    """Return what the product keeps of an undisturbed run that is looked at once a second."""
    seeing = knobs.replace(stale_seconds=365 * 86_400.0)  # the seconds that are left out below were seen, too
    window = Window(started_at=0.0)
    for second, level, busy in looks(shape):
        window = observe(window, second, {"vram": int(level * MIB)}, busy, seeing)
    return close(window, shape.duration, "completed", key=asked.key, wall=wall, knobs=seeing)


def looks(shape: Shape) -> Iterator[tuple[float, float, float]]:
    """Yield (second, MiB, busy) of one look a second; of a long level only the first three looks and the last."""
    for piece in shape.pieces:
        last = piece is shape.pieces[-1]
        seconds = range(math.ceil(piece.begin), math.floor(piece.end) + 1 if last else math.ceil(piece.end))
        if piece.low == piece.high and len(seconds) > 4:
            seconds = [*seconds[:3], seconds[-1]]
        for second in seconds:
            yield float(second), piece.low + piece.slope * (second - piece.begin), piece.busy


def product(history: History, asked: Asked, knobs: Knobs = DEFAULTS) -> PoolEstimate:
    """Return the product's own estimate for one submission."""
    declared = {"vram": int(asked.row.declared * MIB)} if asked.row.declared else None
    rows, needs = history.rows(asked.key), frozenset({"vram"})
    return estimate(asked.key, rows, needs=needs, declared=declared, knobs=knobs).pools["vram"]


def charged(history: History, asked: Asked, knobs: Knobs = DEFAULTS) -> float | None:
    """Return what the product estimates together with the margin that it keeps for it; None when nothing is known."""
    pool = product(history, asked, knobs)
    return None if pool.need is None else (pool.need + (pool.margin or 0)) / MIB


def needed(history: History, asked: Asked) -> float | None:
    """Return what the product estimates, without a margin."""
    need = product(history, asked).need
    return None if need is None else need / MIB


def walk(asked: Sequence[tuple[Asked, Row | None]], rules: Mapping[str, Rule]) -> dict[str, list[Guess]]:
    """Return what each rule guessed before each run; each run ends before the next is asked about."""
    history = History.empty()
    guesses: dict[str, list[Guess]] = {name: [] for name in rules}
    for one, row in asked:
        runs = len(history.by_key[one.key.workload, one.key.params])
        word = product(history, one).basis.word
        for name, rule in rules.items():
            guesses[name].append(Guess(rule(history, one), one.need, runs, word))
        if row is not None:
            history.add(row)
    return guesses


PRODUCT = "need + margin"
OWN: dict[str, Rule] = {"need": needed, PRODUCT: charged}
"""The product itself: its need alone, and with the margin that its rung keeps, which is what a job is placed by."""
RUNGS = [basis.word for basis in sorted(Basis, reverse=True)]
"""The rungs of the ladder, best first."""
