"""EASY backfill for the rules: when the head of the queue could start, and what others must leave alone till then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.world.engine import World
    from bench.world.runs import Run


@dataclass(frozen=True, slots=True)
class Shadow:
    """The head's devices with what they will have to spare at ``at``, its earliest start."""

    at: float
    spare: dict[int, float]

    def spares(self, index: int, size: float, until: float) -> bool:
        """Return whether a job of this size that runs until then leaves the head what it needs."""
        return index not in self.spare or until <= self.at or size <= self.spare[index]


def shadow_of(
    world: World,
    size: float,
    alone: bool,
    count: int,
    rooms: Sequence[float],
    remaining: Callable[[World, Run], float],
) -> Shadow:
    """Return when ``count`` devices could each give ``size``, if runs end as ``remaining`` says."""
    times: list[tuple[float, int, float]] = []
    for device, room in zip(world.devices, rooms, strict=True):
        at, there = world.t, len(device.runs)
        for left, _, run in sorted((remaining(world, run), run.job.row.id, run) for run in device.runs):
            if (alone and there == 0) or (not alone and room >= size):
                break
            room = max(room, 0.0) + max(run.charge, run.usage(world.t))
            there -= 1
            at = world.t + left
        times.append((at, device.index, 0.0 if alone else room - size))
    chosen = sorted(times)[:count]
    return Shadow(chosen[-1][0], {index: spare for _, index, spare in chosen})
