"""When a job that ended badly is run again by itself: how often, after which ends, how long after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placement.domain.jobs import Outcome

REPEATABLE = (
    Outcome.FAILED,
    Outcome.OUT_OF_MEMORY,
    Outcome.LOST,
    Outcome.START_FAILED,
    Outcome.CAP_EXCEEDED,
    Outcome.TIMED_OUT,
)
"""Ends that may be followed by another try. A cancelled job is never run again by itself."""
USUAL = tuple(o for o in REPEATABLE if o is not Outcome.TIMED_OUT)
MEMORY_DEATHS = (Outcome.OUT_OF_MEMORY, Outcome.CAP_EXCEEDED)
MOST_TIMES = 100
WAIT_S = 30.0
LONGEST_WAIT_S = 3600.0
MOST_WAIT_S = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class Policy:
    """``times`` further tries; the first waits ``wait_s`` seconds, each next one twice as long, up to a cap."""

    times: int
    on: tuple[Outcome, ...] = USUAL
    wait_s: float = WAIT_S
    longest_s: float = LONGEST_WAIT_S

    def delay(self, number: int) -> float:
        """Return the seconds between an end and try ``number`` (1 is the first further one)."""
        doublings = min(max(0, number - 1), 60)
        return min(max(self.longest_s, self.wait_s), self.wait_s * float(2**doublings))

    def covers(self, outcome: Outcome, number: int) -> bool:
        """Return whether an end of try ``number`` (0: the first run) is followed by another."""
        return outcome in self.on and outcome in REPEATABLE and number < self.times


def to_json(policy: Policy | None) -> dict[str, Any]:
    """Return a policy as a row keeps it, {} for none."""
    if policy is None or policy.times == 0:
        return {}
    on = [o.value for o in policy.on]
    return {"times": policy.times, "on": on, "wait_s": policy.wait_s, "longest_s": policy.longest_s}


def from_json(kept: Mapping[str, Any]) -> Policy | None:
    """Return the policy of a row, None where it has none."""
    if not kept or not kept.get("times"):
        return None
    on = tuple(Outcome(o) for o in kept.get("on", ()))
    wait, longest = kept.get("wait_s", WAIT_S), kept.get("longest_s", LONGEST_WAIT_S)
    return Policy(int(kept["times"]), on or USUAL, float(wait), float(longest))


def too_small(need: int | None, at_least: int | None, charged: int | None) -> bool:
    """Return whether a run after a memory death would be charged no more than the one that died.

    Bytes; ``need`` of the next run (None: a first run, of which ``at_least`` is proven), ``charged`` what it had.
    """
    if charged is None:
        return False
    asked = need if need is not None else at_least
    return asked is None or asked <= charged
