"""Thousands of random jobs on eight devices, in simulated time, with the rule that ends wait cycles."""

from __future__ import annotations

from collections import Counter

import pytest

from placement.domain.leasing import cycles
from placement.domain.leasing.cycles_text import told
from placement.domain.leasing.leases import Holding
from placement.domain.leasing.waits import Held, Scene, Wanted, scene
from tests.lease_world import World


def scene_of(world: World) -> Scene:
    """Return what running jobs hold and want; what has an end of its own is in nobody's way for ever."""
    held = [
        Held(holder.job, lease.parts, "work" if holder.name.startswith("work") else "", since=lease.granted)
        for lease in world.book.leases.values()
        for holder in lease.holders
        if holder.job in world.running and holder.kind is not Holding.ARTIFACT
    ]
    wanted = [
        Wanted(w.arrival, w.job, w.ask, w.arrival, "work" if again else f"step {w.part}", restartable=again)
        for w in world.queue
        if w.part
        for again in [w.job % 2 == 0]
    ]
    return scene(world.book.slots.values(), held, wanted)


def end_cycles(world: World) -> bool:
    """Do what the rule says about the cycles there are; return whether there was one."""
    found = cycles.resolve(scene_of(world), world.now)
    waits = {wait.arrival: wait for wait in world.queue}
    for cycle in found:
        assert told(cycle)
        for victim in cycle.revoked:
            world.run_again(victim.job)
        for number in cycle.refused:
            world.give_up(waits[number], "refused", told(cycle))
    return bool(found)


@pytest.mark.parametrize(
    ("jobs", "seed"), [(1_000, 1), pytest.param(10_000, 2, marks=[pytest.mark.slow, pytest.mark.timeout(300)])]
)
def test_every_job_ends_or_is_explained_and_nothing_is_left(jobs: int, seed: int) -> None:
    world = World(jobs, seed, end_cycles)
    world.run()
    ended = Counter(world.outcomes.values())

    assert len([number for number in world.outcomes if number >= 0]) == jobs
    assert set(ended) == {"done", "crashed", "revoked", "impossible", "refused"}
    assert ended["done"] > jobs / 2
    assert ended["refused"] < jobs / 20
    assert all(world.said[n] for n, how in world.outcomes.items() if how in ("impossible", "refused", "revoked"))
    assert not world.book.leases
    assert not world.queue
    assert not world.running
    assert not any(any(took.values()) for took in world.used.values())
    assert all((s.leased, s.leases, s.alone, s.holders) == (0, 0, False, ()) for s in world.book.slots.values())
    assert world.seen["granted"] > jobs
    assert world.seen["explained"] > 0
    assert world.seen["run again"] > 0
