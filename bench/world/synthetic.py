"""Traces from a seed, with the statistics of two published ones.

``synthetic`` is like 1,000 jobs of one virtual cluster of Microsoft's Philly with measured memory levels of training
jobs: bursts and long pauses, lengths over three powers of ten (cut at six hours), 31 kinds of run, one in twelve runs
10 to 33 % above its kind's level, declarations in steps of 4 GiB of which one in seven is too low. ``synthetic-shares``
is like 2,000 of Alibaba's pods that share a GPU: one kind makes 40 % of them, a declared share is exactly what is used.
``synthetic-carma`` is like the 60 training tasks with Philly's gaps that CARMA was measured with on 4 x 40,960 MiB, but
none is shorter than ten minutes, so that it can be played sixty times as fast. All load the memory they were made for
(the others 4 x 24,576 and 4 x 16,384 MiB) to 95 % at stretch 1.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bench.world.submissions import Submission

SHORTEST, LONGEST = 30.0, 21600.0
FAMILIES = ("vision", "speech", "ranking", "graph", "language", "style", "detect", "forecast")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of run: its key, level in MiB, busy share, log of its usual seconds, MiB of RAM, weight among all."""

    key: str
    level: float
    util: float
    length: float
    ram: float
    weight: float


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a trace is drawn. ``gaps`` are (share, mean seconds) of exponential pauses between submissions."""

    jobs: int
    memory: float
    gaps: tuple[tuple[float, float], ...]
    again: float  # how often the kind before comes again
    spread: float  # sigma of the log of lengths within one kind
    kinds: Callable[[random.Random], Sequence[Kind]]
    run: Callable[[random.Random, Kind], tuple[float, float, int]]  # peak, declared, devices
    shortest: float = SHORTEST
    longest: float = LONGEST
    load: float = 60.0  # seconds until a run has loaded, at most


def _training(rng: random.Random) -> list[Kind]:
    kinds = []
    for place in range(31):
        family, size = FAMILIES[place % len(FAMILIES)], 2 ** (4 + place // len(FAMILIES))
        level = min(18000.0, max(2200.0, 6700 * math.exp(0.45 * rng.gauss(0, 1))))
        ram = min(31488.0, max(1400.0, 7800 * math.exp(0.9 * rng.gauss(0, 1))))
        length = math.log(1628) + 1.9 * rng.gauss(0, 1)
        kinds.append(Kind(f"{family}:b{size}", round(level), round(rng.uniform(0.36, 0.97), 3), length, round(ram), 0))
    rng.shuffle(kinds)
    return [replace(kind, weight=1 - rank / 32) for rank, kind in enumerate(kinds)]


def _trained(rng: random.Random, kind: Kind) -> tuple[float, float, int]:
    more = rng.uniform(1.1, 1.33) if rng.random() < 0.08 else 1 + 0.01 * rng.gauss(0, 1)
    peak = kind.level * max(0.97, more)
    said = rng.random()
    if said < 0.04:
        declared = 0.0
    elif said < 0.18:
        declared = 1024 * max(1.0, peak * rng.uniform(0.6, 0.98) // 1024)
    else:
        declared = 4096 * math.ceil(peak * rng.uniform(1.0, 1.45) / 4096)
    return round(peak), declared, 2 if rng.random() < 0.05 else 1


def _sharing(rng: random.Random) -> list[Kind]:
    weights = [0.41, 0.105, 0.095, 0.08, 0.04, *(0.27 * 0.93**rank / 12.7 for rank in range(44))]
    shares = [0.81, *(rng.choice((0.16, 0.22, 0.23, 0.32, 0.35, 0.46, 0.47, 0.59, 0.65)) for _ in weights[1:])]
    kinds = []
    for place, (weight, share) in enumerate(zip(weights, shares, strict=True)):
        length = math.log(570) + 1.0 * rng.gauss(0, 1) * (place > 0)
        ram = rng.choice((2048.0, 5600.0, 12288.0, 22888.0, 30517.0, 47104.0))
        kinds.append(Kind(f"pod{place}g{share * 1000:.0f}", round(share * 16384), share, length, ram, weight))
    return kinds


def _shared(rng: random.Random, kind: Kind) -> tuple[float, float, int]:
    return kind.level, kind.level, 1


def _tasks(rng: random.Random) -> list[Kind]:
    kinds = []
    for place in range(20):
        family, size = FAMILIES[place % len(FAMILIES)], 2 ** (4 + place // len(FAMILIES))
        level = min(30000.0, max(2500.0, 9000 * math.exp(0.6 * rng.gauss(0, 1))))
        length = math.log(1500) + 0.5 * rng.gauss(0, 1)
        kinds.append(Kind(f"{family}:b{size}", round(level), round(rng.uniform(0.36, 0.97), 3), length, 16.0, 1))
    return kinds


def _task(rng: random.Random, kind: Kind) -> tuple[float, float, int]:
    peak = kind.level * (1 + 0.01 * rng.gauss(0, 1))
    said = rng.random()
    if said < 0.1:
        declared = 0.0
    elif said < 0.2 and peak < 16000:
        declared = 1024.0 * max(1, math.floor(peak * rng.uniform(0.6, 0.9) / 1024))
    else:
        declared = min(36864.0, 4096.0 * math.ceil(peak * rng.uniform(1.0, 1.3) / 4096))
    return round(peak), declared, 1


def _drawn(recipe: Recipe, seed: int) -> list[Submission]:
    rng = random.Random(f"trace:{recipe.jobs}:{seed}")
    kinds = recipe.kinds(rng)
    weights = [kind.weight for kind in kinds]
    rows: list[Submission] = []
    at, kind = 0.0, kinds[0]
    for place in range(recipe.jobs):
        if rng.random() >= recipe.again:
            kind = rng.choices(kinds, weights)[0]
        length = math.exp(kind.length + recipe.spread * rng.gauss(0, 1))
        duration = float(round(min(recipe.longest, max(recipe.shortest, length))))
        peak, declared, devices = recipe.run(rng, kind)
        load, spike = round(min(recipe.load, 0.3 * duration)), rng.choice((0.0, 0.3, 0.6, 0.9))
        rows.append(
            Submission(place, at, duration, devices, kind.key, peak, kind.ram, declared, kind.util, load, 0.92, spike)
        )
        mean = rng.choices([mean for _, mean in recipe.gaps], [share for share, _ in recipe.gaps])[0]
        at += rng.expovariate(1 / mean)
    asked = sum(row.devices * row.peak * row.duration for row in rows)
    factor = asked / (0.95 * recipe.memory * rows[-1].arrival)
    return [replace(row, arrival=float(round(row.arrival * factor))) for row in rows]


TRAINING = Recipe(1000, 4 * 24576.0, ((0.5, 30), (0.33, 500), (0.17, 3300)), 0.02, 2.1, _training, _trained)
SHARING = Recipe(2000, 4 * 16384.0, ((0.75, 140), (0.25, 930)), 0.25, 1.9, _sharing, _shared)

TASKS = Recipe(
    60,
    4 * 40960.0,
    ((0.5, 30), (0.33, 300), (0.17, 1000)),
    0.1,
    0.5,
    _tasks,
    _task,
    shortest=600,
    longest=5400,
    load=120,
)


def training(seed: int) -> list[Submission]:
    """Return a trace like Philly's."""
    return _drawn(TRAINING, seed)


def sharing(seed: int) -> list[Submission]:
    """Return a trace like that of pods which share GPUs."""
    return _drawn(SHARING, seed)


def tasks(seed: int) -> list[Submission]:
    """Return a trace like CARMA's."""
    return _drawn(TASKS, seed)


KINDS: dict[str, Callable[[int], list[Submission]]] = {
    "synthetic": training,
    "synthetic-shares": sharing,
    "synthetic-carma": tasks,
}
