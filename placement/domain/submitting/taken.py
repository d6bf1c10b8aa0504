"""A device, part of one, or a machine that a person takes for a while: a job that waits, held as it was granted."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from calibration.domain.estimate import Estimate, PoolEstimate
from calibration.domain.ladder import Basis
from calibration.domain.resources import MIB, gib
from placement.domain.ending.outcomes import Verdict
from placement.domain.jobs import Outcome

RAM_OF_ITS_OWN = 16 * MIB
"""What the program that waits needs; what the person starts is measured and counted beside it."""


class Kind(enum.StrEnum):
    """What a job is: a command to be run, or a person's hold."""

    RUN = "run"
    HOLD = "hold"


def of_hold(verdict: Verdict) -> Verdict:
    """Return how a hold ended: it teaches nothing, and one that ran out has done nothing that could complete."""
    over = verdict.outcome is Outcome.COMPLETED
    return replace(verdict, feeds="nothing", sentence="Its time was over." if over else verdict.sentence)


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody takes: ``device`` "" for the whole machine, ``bytes`` None for the device alone. Seconds."""

    node: str
    device: str = ""
    bytes: int | None = None
    seconds: float = 3600.0
    why: str = ""

    @property
    def words(self) -> str:
        """Return what is taken, without its name."""
        if not self.device:
            return "the machine"
        return "the device" if self.bytes is None else gib(self.bytes)


def exactly(vram: int | None, ram: int) -> Estimate:
    """Return the estimate of a promise: exactly what was asked for, nothing learned. ``vram`` None: no device."""
    pools = {"ram": PoolEstimate("ram", ram, Basis.DECLARED, 0, (), promise=True)}
    if vram is not None:
        pools["vram"] = PoolEstimate("vram", vram, Basis.DECLARED, 0, (), promise=True)
    whole = ram + (vram or 0)
    return Estimate(pools, Basis.DECLARED, whole, whole)


@dataclass(frozen=True, slots=True)
class Idle:
    """How long nothing has used what is held. Seconds; ``ends``: its time is over, ``warn``: it soon is."""

    since: float
    left: float
    ends: bool
    warn: bool


def idle(unused: float, allowed: float, warning: float) -> Idle:
    """Return where a hold stands that nothing has used for so long; ``allowed`` 0: it may stay unused."""
    if allowed <= 0:
        return Idle(unused, float("inf"), False, False)
    left = max(0.0, allowed - unused)
    return Idle(unused, left, left == 0, 0 < left <= warning)
