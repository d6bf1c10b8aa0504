"""What is told at submit: never, or now with so many workers, and the advice holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.domain.estimate import Estimate
from placement.domain.admission.decision import Verdict
from placement.domain.knobs import Knobs
from placement.domain.planning.feasibility import could_ever, max_workers
from placement.domain.planning.plan import plan
from placement.domain.world.snapshot import Snapshot
from tests.builders import (
    GIB,
    MIB,
    PoolState,
    a_device,
    a_node,
    a_ram,
    a_running,
    a_snapshot,
    a_waiting,
    an_estimate,
)
from tests.examples import examples

ONE = a_waiting(1, GIB).request
NONE = a_waiting(1, gpu=False).request


@pytest.mark.parametrize(
    ("vram", "ram", "possible"),
    [
        pytest.param(12 * GIB, GIB, True, id="fits when free, though it is full now"),
        pytest.param(24 * GIB, GIB, False, id="the whole card less what is always kept"),
        pytest.param(12 * GIB, 65 * GIB, False, id="more RAM than the machine has"),
        pytest.param(None, None, True, id="nothing known"),
    ],
)
def test_could_ever(vram: int | None, ram: int | None, possible: bool) -> None:
    snapshot = a_snapshot(a_node(a_device(24 * GIB, 24 * GIB)), knobs=Knobs())
    found = could_ever(snapshot, ONE, an_estimate(vram, ram))
    assert found[0].ok is possible
    assert all(check.ok is possible for check in found)


def test_a_refusal_says_what_each_device_gives() -> None:
    snapshot = a_snapshot(a_node(a_device(24 * GIB), a_device(80 * GIB, index=1)), knobs=Knobs())
    found = could_ever(snapshot, ONE, an_estimate(90 * GIB))
    assert [c.figures["at_most"] for c in found[1:]] == [24 * GIB - 24 * GIB // 100, 80 * GIB - 256 * MIB]
    assert found[0].sentence == (
        "Can never start. Needs 90.0 GiB; gpu1 can give at most 79.8 GiB. "
        "Needs 90.0 GiB; gpu0 can give at most 23.8 GiB."
    )


@pytest.mark.parametrize("need", [25 * GIB, 90 * GIB, 9000 * GIB])
def test_what_a_device_gives_at_most_does_not_shrink_with_what_is_asked(need: int) -> None:
    """A margin is a share of the need: of 9000 GiB it alone is more than the card, and nobody asked for that."""
    snapshot = a_snapshot(a_node(a_device(24 * GIB)), knobs=Knobs())
    refused = could_ever(snapshot, ONE, an_estimate(need, margin=need // 20))[1]
    most = refused.figures["at_most"]
    assert most == 24 * GIB * 20 // 21
    assert refused.shortfall == need - most
    assert could_ever(snapshot, ONE, an_estimate(most, margin=most // 20))[0].ok
    assert not could_ever(snapshot, ONE, an_estimate(most + 64, margin=(most + 64) // 20))[0].ok


def test_a_node_that_is_not_read_yet_refuses_nothing() -> None:
    unread = replace(a_ram(), total=None, free=None, used=None, declared=0, state=PoolState.NOT_READY, age=None)
    found = could_ever(a_snapshot(a_node(ram=unread)), NONE, an_estimate(ram=8 * GIB, gpu=False))
    assert found[0].ok


def test_a_lost_device_may_come_back() -> None:
    snapshot = a_snapshot(a_node(a_device(24 * GIB, None, state=PoolState.LOST)))
    assert could_ever(snapshot, ONE, an_estimate(8 * GIB))[0].ok


def scaled(each: int, ram: int) -> Callable[[int], Estimate]:
    """Return the estimate of a workload whose need is a line through the origin."""

    def estimate_for(workers: int) -> Estimate:
        return an_estimate(each * workers, ram * workers, margin=64 * MIB)

    return estimate_for


def test_the_most_workers_that_fit_now() -> None:
    node = a_node(a_device(24 * GIB, 4 * GIB), a_device(24 * GIB, 9 * GIB, index=1))
    running = (a_running(90, 12 * GIB, 4 * GIB, limit=60.0),)
    snapshot = a_snapshot(node, running=running)
    # gpu0 has 20 free less 8 to grow, gpu1 has 15: five of 3 GiB would fit there, were it not for the margin
    assert max_workers(snapshot, a_waiting(1), scaled(3 * GIB, 0)) == 4
    assert max_workers(snapshot, a_waiting(1), scaled(16 * GIB, 0)) == 0
    assert max_workers(snapshot, a_waiting(1), scaled(MIB, 0)) == 64


@settings(max_examples=examples(40), deadline=None)
@given(
    used=st.lists(st.integers(0, 24), min_size=1, max_size=3),
    each=st.integers(1, 9),
    ram=st.integers(0, 9),
    queue=st.lists(st.integers(1, 24), max_size=3),
)
def test_the_advice_holds_when_it_is_taken_at_once(used: list[int], each: int, ram: int, queue: list[int]) -> None:
    devices = (a_device(24 * GIB, n * GIB, index=i) for i, n in enumerate(used))
    waiting = tuple(a_waiting(n, size * GIB) for n, size in enumerate(queue, 1))
    snapshot: Snapshot = a_snapshot(a_node(*devices, ram=a_ram(64 * GIB)), waiting=waiting, knobs=Knobs())
    estimate_for = scaled(each * GIB, ram * GIB)
    template = a_waiting(99)
    count = max_workers(snapshot, template, estimate_for, 12)
    for workers in range(1, 13):
        taken = replace(template, workers=workers, estimate=estimate_for(workers))
        verdict = plan(replace(snapshot, waiting=(*waiting, taken))).decisions()[-1].verdict
        if workers == count:
            assert verdict is Verdict.START
        if workers > count:
            assert verdict is Verdict.WAIT
