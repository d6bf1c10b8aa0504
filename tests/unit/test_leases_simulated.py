"""Thousands of random jobs on eight devices, in simulated time."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.lease_world import World


def refuse_the_youngest(world: World) -> bool:
    """Refuse the youngest request from inside a job: its job holds what others wait for."""
    inside = [wait for wait in world.queue if wait.part]
    if not inside:
        return False
    world.give_up(inside[-1], "refused", f"waits with {len(world.queue) - 1} others for one another")
    return True


@pytest.mark.parametrize(
    ("jobs", "seed"), [(1_000, 1), pytest.param(10_000, 2, marks=[pytest.mark.slow, pytest.mark.timeout(300)])]
)
def test_every_job_ends_or_is_explained_and_nothing_is_left(jobs: int, seed: int) -> None:
    world = World(jobs, seed, refuse_the_youngest)
    world.run()
    ended = Counter(world.outcomes.values())

    assert len([number for number in world.outcomes if number >= 0]) == jobs
    assert set(ended) == {"done", "crashed", "revoked", "impossible", "refused"}
    assert ended["done"] > jobs / 2
    assert all(world.said[n] for n, how in world.outcomes.items() if how in ("impossible", "refused", "revoked"))
    assert not world.book.leases
    assert not world.queue
    assert not world.running
    assert not any(any(took.values()) for took in world.used.values())
    assert all((s.leased, s.leases, s.alone, s.holders) == (0, 0, False, ()) for s in world.book.slots.values())
    assert world.seen["granted"] > jobs
    assert world.seen["explained"] > 0
