"""What is foretold beside leases of running jobs: nobody is told "any moment now" whom the gate will not start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from placement.domain.admission.decision import Code
from placement.domain.forecasting.told import predicted
from placement.domain.planning.plan import plan
from placement.domain.world.requests import Exclusive
from placement.domain.world.snapshot import Charge, KeptPlan, Running
from tests.builders import GIB, a_device, a_node, a_running, a_snapshot, a_waiting

IN_1000_S = KeptPlan("atlas", ("GPU-0",), 2000.0)


def lease(job: Running, gib: int, device: int = 0) -> Running:
    """Return what a running job was granted besides on a device."""
    charge = Charge(gib * GIB, gib * GIB, 0, gib * GIB, settled=True, promise=True)
    return replace(job, devices=(f"GPU-{device}",), charges={f"GPU-{device}": charge}, more=True)


def test_a_plan_whose_second_comes_before_its_room_lets_nobody_pass_in_the_play_either() -> None:
    """An in-job lease that came later is in its way; gpu1 is overbooked. The gate sets gpu0 aside, the play has to."""
    holder = a_running(1, 13 * GIB, elapsed=100.0)
    other = a_running(2, 13 * GIB, device=1, elapsed=100.0, arrival=50)
    node = a_node(a_device(), a_device(index=1, declared=4 * GIB))
    queue = (a_waiting(10, 8 * GIB, plan=IN_1000_S), a_waiting(11, GIB))
    made = plan(a_snapshot(node, running=(holder, other, lease(other, 8)), waiting=queue))
    assert made.explain(11).code is Code.SET_ASIDE
    told = predicted(made)[11]
    assert told.in_s is None or told.in_s > 1000.0


def test_one_that_leaves_what_the_plan_needs_at_its_second_still_passes() -> None:
    holder, other = a_running(1, 13 * GIB, elapsed=100.0, limit=600.0), a_running(2, device=None, elapsed=100.0)
    queue = (a_waiting(10, 8 * GIB, plan=IN_1000_S), a_waiting(11, GIB))
    made = plan(a_snapshot(a_node(a_device()), running=(holder, other, lease(other, 8)), waiting=queue))
    assert list(made.grants) == [11]


@pytest.mark.parametrize("exclusive", [Exclusive.NO, Exclusive.DEVICE])
def test_a_first_run_that_has_its_device_alone_lets_nobody_in_when_it_settles(exclusive: Exclusive) -> None:
    first = a_running(1, 23 * GIB, GIB, cold=True, exclusive=exclusive, elapsed=170.0, limit=5000.0)
    made = plan(a_snapshot(a_node(a_device(used=GIB)), running=(first,), waiting=(a_waiting(10, 4 * GIB),)))
    told = predicted(made)[10]
    assert told.in_s is not None
    assert (told.in_s > 1000.0) is (exclusive is Exclusive.DEVICE)


def test_what_a_first_run_was_promised_since_is_not_given_back_when_it_settles() -> None:
    first = a_running(1, 4 * GIB, 2 * GIB, cold=True, elapsed=170.0, limit=5000.0)
    whole = Charge(22 * GIB, 22 * GIB, 2 * GIB, 22 * GIB, promised=18 * GIB)
    first = replace(first, charges={**first.charges, "GPU-0": whole})
    made = plan(a_snapshot(a_node(a_device(used=2 * GIB)), running=(first,), waiting=(a_waiting(10, 8 * GIB),)))
    told = predicted(made)[10]
    assert told.in_s is not None
    assert told.in_s > 1000.0
