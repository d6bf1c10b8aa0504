"""Many waiting groups that differ cost a cycle and a forecast little, and are all foretold."""

from __future__ import annotations

from placement.domain.admission.demands import waiting_demand
from placement.domain.admission.places import Board
from placement.domain.forecasting.forecast import forecast
from placement.domain.forecasting.stage import Stage, turns
from placement.domain.planning.plan import plan
from placement.domain.world.snapshot import Snapshot
from tests.builders import GIB, MIB, a_device, a_node, a_ram, a_running, a_snapshot, a_waiting


def world(jobs: int) -> Snapshot:
    node = a_node(*(a_device(24 * GIB, 20 * GIB, index=n) for n in range(64)), ram=a_ram(4096 * GIB))
    running = tuple(a_running(10_000 + n, 20 * GIB, 20 * GIB, device=n, limit=50.0 + n) for n in range(64))
    least = [2 + job % 3 for job in range(jobs)]
    waiting = [
        a_waiting(job + 1, None, GIB, group=(few, few), each=5 * GIB + job * MIB, learned=60.0)
        for job, few in enumerate(least)
    ]
    return a_snapshot(node, running=running, waiting=tuple(waiting))


def test_groups_that_are_much_alike_are_played_as_one() -> None:
    snapshot = world(200)
    made = plan(snapshot)
    stage = Stage(made.board)
    order = turns(stage, [(waiting, waiting_demand(waiting)) for waiting in made.waits()])
    assert len(order) == 200
    assert len(stage.kinds) < 60
    told = forecast(made.board, tuple(made.waits()), made.bar)
    assert all(one.in_s is not None for one in told.values())
    for waiting in made.waits():
        assert len(told[waiting.job].devices) == waiting.request.min_devices


def test_a_group_is_not_played_as_one_that_could_never_start() -> None:
    snapshot = world(60)
    stage = Stage(Board(snapshot))
    turns(stage, [(waiting, waiting_demand(waiting)) for waiting in snapshot.waiting])
    never, ever = (a_waiting(n, None, GIB, group=(2, 2), each=24 * GIB + n) for n in (1, 0))
    numbers = [stage.kind(waiting_demand(one)) for one in (never, ever)]
    assert numbers[0] in stage.shut
    assert numbers[1] not in stage.shut
