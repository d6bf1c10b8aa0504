"""A job that has room waits where what it will ask for while it runs would wait beside others' requests."""

from __future__ import annotations

import pytest

from placement.domain.admission.decision import Code, Decision, Verdict
from placement.domain.leasing.later import STUCK_S
from placement.domain.planning.plan import plan, would
from placement.domain.unblocking.remedies import remedies
from placement.domain.world.asks import Ask
from placement.domain.world.devices import Backend, Kind
from placement.domain.world.known_asks import Known, Pending
from placement.domain.world.snapshot import Snapshot, Waiting
from tests.builders import GIB, a_device, a_node, a_running, a_snapshot, a_waiting

WALL = a_snapshot().wall


def asks(gib: int, **more: object) -> Ask:
    return Ask(Kind.GPU, Backend.CUDA, group_bytes=gib * GIB, **more)  # type: ignore[arg-type]


def known(*found: Ask) -> tuple[Known, ...]:
    return tuple(Known(ask, WALL - 60) for ask in found)


def waits(gib: int, *, ago: float = 10, order: int = 1, device: int = 0, job: int = 90, **more: int) -> Pending:
    ask = asks(gib, node="atlas")
    return Pending(1, ask, WALL - ago, job, order=order, devices=(f"GPU-{device}",), **more)


def world(pending: Pending, *waiting: Waiting, devices: int = 1, held: int = 12) -> Snapshot:
    there = a_node(*(a_device(24 * GIB, index=n) for n in range(devices)))
    return a_snapshot(there, running=(a_running(90, held * GIB, 0, device=0),), waiting=waiting, asked=(pending,))


def job(number: int, *later: Ask, vram: int = 2, **more: object) -> Waiting:
    return a_waiting(number, vram * GIB, later=known(*later), **more)  # type: ignore[arg-type]


def decision(snapshot: Snapshot, number: int) -> Decision:
    return plan(snapshot).explain(number)


def test_a_job_is_held_for_what_it_will_ask_for() -> None:
    """12 of 24 GiB are free; 20 are waited for; the job needs 2 and will ask for 11 more, and 10 would be left."""
    found = decision(world(waits(20), job(2, asks(11))), 2)
    assert (found.verdict, found.code) == (Verdict.WAIT, Code.PLACEMENT_PRESSURE)
    assert found.headline == (
        "Runs like this one ask for 11.0 GiB on gpu0 later; 10.0 GiB are left there, and #90 waits for it already. "
        "That holds this one for 10 min more at most."
    )
    check = next(c for c in found.candidates[0].checks if c.code is Code.PLACEMENT_PRESSURE)
    assert check.figures == {
        "need": 11 * GIB,
        "room": 10 * GIB,
        "devices": "gpu0",
        "waits": "#90",
        "in": pytest.approx(STUCK_S - 10),
    }


@pytest.mark.parametrize(
    ("pending", "waiting"),
    [
        pytest.param(waits(20), job(2, asks(10)), id="served beside them to the byte"),
        pytest.param(waits(20), job(2), id="nothing is known of it"),
        pytest.param(waits(20, ago=STUCK_S), job(2, asks(11)), id="stuck for too long"),
        pytest.param(waits(20, order=3), job(2, asks(11)), id="it was asked for after the job was queued"),
        pytest.param(waits(20, job=77), job(2, asks(11)), id="of a job that has ended"),
        pytest.param(waits(20), job(2, asks(30)), id="could never be served, which is told when it asks"),
        pytest.param(waits(20), job(2, asks(11), priority=1), id="of lower priority"),
    ],
)
def test_it_is_not_held_where_nothing_comes_of_it(pending: Pending, waiting: Waiting) -> None:
    assert decision(world(pending, waiting), 2).verdict is Verdict.START


def test_a_request_of_higher_priority_goes_first_whenever_it_came() -> None:
    assert decision(world(waits(20, order=9, priority=1), job(2, asks(11))), 2).verdict is Verdict.WAIT


def test_another_device_is_taken_where_the_request_cannot_go() -> None:
    """The request may go on gpu0 alone; what the job will ask for could be served on gpu1."""
    found = decision(world(waits(20), job(2, asks(11)), devices=2), 2)
    assert found.verdict is Verdict.START


def test_a_held_job_is_in_nobodys_way_and_keeps_no_plan() -> None:
    made = plan(world(waits(20), job(2, asks(11)), job(3, vram=5)))
    assert made.pressed == {2: pytest.approx(STUCK_S - 10)}
    assert made.bar is None
    assert set(made.grants) == {3}
    assert [d.job for d in made.starts] == [3]


def test_the_end_of_whoever_asked_would_start_it() -> None:
    snapshot = world(waits(20), job(2, asks(11)))
    (found,) = remedies(snapshot, 2)
    assert (found.ends, found.place) == ((90,), "gpu0")


def test_whoever_asks_about_a_job_that_is_not_queued_is_told_the_same() -> None:
    assert would(world(waits(20)), job(2, asks(11))).code is Code.PLACEMENT_PRESSURE
