"""The goals of the gate, each with what it compares: met or not, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.world.tally import Tally

NEEDED = (
    "product", "exclusive-fifo", "declared-skip", "naive-free-now", "carma", "gate-reference", "gate-fifo",
    "oracle-easy", "oracle-big", "oracle-lpt",
)  # fmt: skip
"""Policies without which the goals cannot all be judged."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One comparison: ``got`` is to be at most ``limit``."""

    name: str
    what: str
    got: float
    limit: float

    @property
    def met(self) -> bool:
        """Return whether it is reached."""
        return self.got <= self.limit + 1e-9

    def line(self) -> str:
        """Return it as a sentence."""
        off = abs(self.limit - self.got)
        told = f"{off:.3g} to spare" if self.met else f"{off:.3g} too much"
        return (
            f"{'yes' if self.met else 'NO '} {self.name} {self.what}: {self.got:.3f}, at most {self.limit:.3g} ({told})"
        )


CROWDED = 1.5
"""Where whole devices take this many times as long as the best packing, the limits for a trace under load hold."""


def goals(tallies: Mapping[str, Tally], jobs: int) -> list[Goal]:
    """Return G1 to G3 and G5, judged by what these policies came to on one trace."""
    ours, easy = tallies["product"], tallies["oracle-easy"]
    oracle = min(one.makespan for name, one in tallies.items() if name.startswith("oracle-"))
    loaded = tallies["exclusive-fifo"].makespan > CROWDED * oracle
    carma, reference = tallies["carma"], tallies["gate-reference"]
    found = [Goal("G1", "makespan / best clairvoyant", ours.makespan / oracle, 1.05)]
    if loaded:
        found.append(Goal("G1", "makespan / exclusive", ours.makespan / tallies["exclusive-fifo"].makespan, 0.65))
    found += [
        Goal("G2", "mean JCT / clairvoyant EASY", ours.mean_jct / easy.mean_jct, 1.25 if loaded else 1.10),
        Goal("G2", "mean JCT / reference gate", ours.mean_jct / reference.mean_jct, 0.75),
        Goal("G2", "mean JCT / CARMA's rule", ours.mean_jct / carma.mean_jct, 1.0),
        Goal("G3", "OOM kills per 1,000 jobs", 1000 * ours.oom_kills / jobs, 5.0),
    ]
    for name, share in (("declared-skip", 1 / 30), ("naive-free-now", 1 / 100), ("carma", 1 / 10)):
        if tallies[name].oom_kills:
            found.append(Goal("G3", f"OOM kills / {name}", ours.oom_kills / tallies[name].oom_kills, share))
    found += [
        Goal("G5", "longest wait / clairvoyant EASY", ours.longest_wait / easy.longest_wait, 1.25),
        Goal("G5", "longest wait / strict order", ours.longest_wait / tallies["gate-fifo"].longest_wait, 1.0),
    ]
    return found


def with_outsiders(alone: Tally, visited: Sequence[Mapping[str, Tally]]) -> list[Goal]:
    """Return G4: the worst of the runs with outsiders beside the run without."""
    span = max(one["product"].makespan for one in visited) / alone.makespan
    found = [Goal("G4", "makespan with outsiders / without", span, 1.05)]
    counted = [one for one in visited if one["declared-skip"].oom_kills]
    if counted:
        worst = max(one["product"].oom_kills / one["declared-skip"].oom_kills for one in counted)
        found.append(Goal("G4", "OOM kills with outsiders / declared-skip", worst, 0.1))
    return found
