"""When the watchdog may stop a job: never, when others are at risk, or at the job's own cap, too."""

from __future__ import annotations

import enum


class Policy(enum.StrEnum):
    """What the watchdog does about a job that is above its figures, the mildest first."""

    WARN = "warn"
    RISK = "risk"
    CAP = "cap"


WORDS = {
    Policy.WARN: "warn only",
    Policy.RISK: "stop when others are at risk",
    Policy.CAP: "stop at the cap",
}
SAID = {
    Policy.WARN: "the watchdog only warns",
    Policy.RISK: "the watchdog stops it past its grant when memory runs short, not before",
    Policy.CAP: "the watchdog stops it at its cap, and past its grant when memory runs short",
}
"""What becomes of a job that nothing else keeps in its figures."""
CHOICES = tuple(policy.value for policy in Policy)
"""What a node, a workload or the knob may say; "" leaves it to the next of them."""


def in_force(node: str, workload: str, knob: str) -> Policy:
    """Return the policy of a job. Its node's (without one: the knob's) is the least, its workload's may be stricter.

    Never milder: whoever defines a workload would else exempt their own runs from what protects everybody's.
    """
    order = list(Policy)
    here = Policy(node or knob)
    return max(here, Policy(workload), key=order.index) if workload else here
