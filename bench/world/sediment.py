"""What the product has learned so far, kept as its database keeps it, without one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from bench.world.submissions import Submission
from calibration.domain.estimate import Estimate, estimate
from calibration.domain.knobs import Knobs
from calibration.domain.sediment import Key, Row

MIB = 1 << 20
NEWEST = 400
"""Rows that are read for one estimate."""
LENGTHS = 50
"""Durations that a prediction stands on."""


def key_of(row: Submission) -> Key:
    """Return what a submission is learned under: a person per script, who runs it with arguments."""
    script = row.script
    return Key(f"{script}: python", f"edition {row.edition}", row.key, script)


@dataclass(frozen=True, slots=True)
class Lengths:
    """Seconds that earlier runs took, shortest first, and what a run is predicted to take; None: nothing known."""

    seen: tuple[float, ...]
    predicted: float | None

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Lengths:
        """Return the lengths of these runs."""
        seen = tuple(sorted(seconds))
        return cls(seen, seen[max(0, math.ceil(0.9 * len(seen)) - 1)] if seen else None)

    def times(self, factor: float) -> Lengths:
        """Return them as wrong as this."""
        if factor == 1 or self.predicted is None:
            return self
        return Lengths(tuple(seconds * factor for seconds in self.seen), self.predicted * factor)


class Sediment:
    """Closed rows and settled open ones, with estimates and durations of each key until its rows change."""

    def __init__(self, knobs: Knobs) -> None:
        self.knobs = knobs
        self._rows: defaultdict[str, list[Row]] = defaultdict(list)  # per script, newest last
        self._of_key: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
        self._open: defaultdict[str, dict[int, Row]] = defaultdict(dict)
        self._lengths: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self._of_user: defaultdict[str, list[float]] = defaultdict(list)
        self._known: defaultdict[str, dict[tuple[Key, float], Estimate]] = defaultdict(dict)
        self._predicted: defaultdict[str, dict[str, Lengths]] = defaultdict(dict)
        self._to_peak: dict[tuple[Key, str], float] = {}

    def keep(self, row: Row, job: int) -> None:
        """Keep the row of a run that is over."""
        where = row.key.workload
        self._open[where].pop(job, None)
        self._rows[where].append(row)
        self._of_key[where, row.key.params].append(row)
        self._known[where].clear()
        if row.completed:
            self._predicted[where].clear()
            self._lengths[where, row.key.params].append(row.duration)
            self._of_user[where].append(row.duration)
            for kind, seconds in row.seconds_to_peak.items():
                name = (row.key, kind)
                self._to_peak[name] = max(seconds, self._to_peak.get(name, 0.0))

    def tell(self, row: Row | None, key: Key, job: int) -> None:
        """Keep the row of a settled run that still goes on; None: it is over, and left none."""
        where = key.workload
        if row is not None:
            self._open[where][job] = row
        elif self._open[where].pop(job, None) is None:
            return
        self._known[where].clear()

    def estimate(self, key: Key, declared: float) -> Estimate:
        """Return what a run of the key is expected to need; ``declared`` MiB, 0 for nothing said."""
        known = self._known[key.workload]
        if (key, declared) not in known:
            closed = self._rows[key.workload][-NEWEST:]
            older = [row for row in self._of_key[key.workload, key.params][-NEWEST:] if row.at < closed[0].at]
            rows = [*closed[::-1], *older[::-1], *self._open_of(key)]
            said = {"vram": int(declared * MIB)} if declared else None
            known[key, declared] = estimate(
                key, rows, needs=frozenset({"ram", "vram"}), declared=said, knobs=self.knobs
            )
        return known[key, declared]

    def _open_of(self, key: Key) -> Sequence[Row]:
        return [row for row in self._open[key.workload].values() if row.key.params == key.params]

    def lengths(self, key: Key) -> Lengths:
        """Return what is known of how long the key's runs take, else its user's."""
        known = self._predicted[key.workload]
        if key.params not in known:
            of_key = self._lengths.get((key.workload, key.params), [])[-LENGTHS:]
            known[key.params] = Lengths.of(of_key or self._of_user[key.workload][-LENGTHS:])
        return known[key.params]

    def seconds_to_peak(self, key: Key, kind: str) -> float | None:
        """Return the longest time that a completed run of the key took to its peak."""
        return self._to_peak.get((key, kind))
