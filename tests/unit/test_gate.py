"""The gate: every code, its figures, who leads, and what a start is granted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.domain.estimate import Basis
from placement.domain.admission.decision import Candidate, Check, Code, Decision, Verdict
from placement.domain.admission.gate import decide, nearness, started
from placement.domain.admission.places import Board
from placement.domain.knobs import Knobs
from placement.domain.planning.plan import plan
from placement.domain.world.requests import Exclusive
from placement.domain.world.reservations import booked_room, measured_room
from placement.domain.world.snapshot import Hold, Node, Snapshot, Waiting
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
)
from tests.examples import examples


def check(decision: Decision, code: Code, pool: str | None = None) -> Check:
    """Return the leading place's (else the whole's) check with this code."""
    found = [*(c for one in decision.candidates[:1] for c in one.checks), *decision.whole]
    return next(c for c in found if c.code is code and (pool is None or c.pool == pool))


FREE_8192 = a_node(a_device(24 * GIB, 24 * GIB - 8192 * MIB))


@pytest.mark.parametrize(
    ("node", "job", "verdict", "code"),
    [
        pytest.param(FREE_8192, a_waiting(1, 8192 * MIB), Verdict.START, None, id="an exact fit fits"),
        pytest.param(FREE_8192, a_waiting(1, 8192 * MIB + 1), Verdict.WAIT, Code.NO_ROOM, id="a byte more waits"),
        pytest.param(
            a_node(a_device(24 * GIB, declared=4 * GIB)),
            a_waiting(1, 5 * GIB),
            Verdict.WAIT,
            Code.INFEASIBLE,
            id="more than is declared can never start",
        ),
        pytest.param(
            a_node(ram=a_ram(16 * GIB, 14 * GIB)),
            a_waiting(1, ram=3 * GIB, gpu=False),
            Verdict.WAIT,
            Code.NO_ROOM,
            id="RAM alone blocks a job without a device",
        ),
        pytest.param(
            a_node(a_device(), ram=a_ram(16 * GIB, 14 * GIB)),
            a_waiting(1, 4 * GIB, 3 * GIB),
            Verdict.WAIT,
            Code.NO_ROOM,
            id="RAM alone blocks a job with a device",
        ),
        pytest.param(
            a_node(a_device(24 * GIB, 23 * GIB)),
            a_waiting(1, ram=3 * GIB, gpu=False),
            Verdict.START,
            None,
            id="a full device is nothing to a job without one",
        ),
        pytest.param(
            a_node(a_device()), a_waiting(1, 80 * GIB), Verdict.WAIT, Code.INFEASIBLE, id="S2: larger than every card"
        ),
        pytest.param(a_node(), a_waiting(1, GIB), Verdict.WAIT, Code.INFEASIBLE, id="no GPU is declared at all"),
        pytest.param(
            a_node(a_device(state=PoolState.OK, age=6.0)),
            a_waiting(1, GIB),
            Verdict.WAIT,
            Code.STALE_READING,
            id="X1: a reading of 6 s ago admits nothing",
        ),
        pytest.param(
            a_node(a_device(age=-0.5)), a_waiting(1, GIB), Verdict.WAIT, Code.STALE_READING, id="an age below zero"
        ),
        pytest.param(
            a_node(a_device(used=None, state=PoolState.NOT_READY, age=None)),
            a_waiting(1, GIB),
            Verdict.WAIT,
            Code.NO_READING,
            id="X2: no reading yet admits nothing",
        ),
        pytest.param(
            a_node(a_device(used=None)), a_waiting(1, GIB), Verdict.WAIT, Code.NO_READING, id="unknown free is no room"
        ),
        pytest.param(
            a_node(a_device(used=None, state=PoolState.UNSUPPORTED)),
            a_waiting(1, GIB),
            Verdict.WAIT,
            Code.NO_READING,
            id="a measurable device that is not measured stays shut",
        ),
        pytest.param(
            a_node(a_device(state=PoolState.LOST)), a_waiting(1, GIB), Verdict.WAIT, Code.DEVICE_LOST, id="lost"
        ),
        pytest.param(
            a_node(a_device(state=PoolState.LOST)),
            a_waiting(1, gpu=False, ram=GIB),
            Verdict.START,
            None,
            id="lost, RAM",
        ),
        pytest.param(
            a_node(a_device(state=PoolState.UNREADABLE, age=90.0, message="driver/library mismatch")),
            a_waiting(1, GIB),
            Verdict.WAIT,
            Code.STALE_READING,
            id="was there and cannot be read now",
        ),
        pytest.param(
            a_node(a_device(None, None, declared=16 * GIB, measurable=False, state=PoolState.UNSUPPORTED, age=None)),
            a_waiting(1, 16 * GIB, backend="CUDA"),
            Verdict.START,
            None,
            id="what no probe can read is gated by declarations alone",
        ),
        pytest.param(
            a_node(a_device(), state="stale", tick_age=20.0),
            a_waiting(1, GIB),
            Verdict.WAIT,
            Code.NODE_STALE,
            id="stale",
        ),
        pytest.param(
            a_node(a_device(), tick_age=-1.0), a_waiting(1, GIB), Verdict.WAIT, Code.NODE_STALE, id="tick of the future"
        ),
        pytest.param(
            a_node(a_device(), work_age=60.0), a_waiting(1, GIB), Verdict.WAIT, Code.NODE_NO_WORK, id="takes no work"
        ),
        pytest.param(
            a_node(a_device(), disk_free=10 * MIB), a_waiting(1, GIB), Verdict.WAIT, Code.DISK_LOW, id="disk is low"
        ),
        pytest.param(
            a_node(a_device(), processes_free=3),
            a_waiting(1, GIB),
            Verdict.WAIT,
            Code.PROCESS_LIMIT,
            id="too few processes left",
        ),
        pytest.param(
            a_node(a_device(), state="draining"), a_waiting(1, GIB), Verdict.WAIT, Code.DRAINING, id="node draining"
        ),
        pytest.param(
            a_node(a_device(draining=True)), a_waiting(1, GIB), Verdict.WAIT, Code.DRAINING, id="device draining"
        ),
        pytest.param(
            a_node(a_device(hold=Hold("bob", 0.0))), a_waiting(1, GIB), Verdict.WAIT, Code.HELD, id="device held"
        ),
        pytest.param(
            a_node(a_device(hold=Hold("bob", 0.0, until=1.0))), a_waiting(1, GIB), Verdict.START, None, id="hold over"
        ),
        pytest.param(
            a_node(a_device(), ram_pressure=True), a_waiting(1, GIB), Verdict.WAIT, Code.RAM_PRESSURE, id="pressure"
        ),
        pytest.param(
            a_node(a_device()), a_waiting(1, GIB, hold=Hold("alice", 0.0)), Verdict.WAIT, Code.JOB_HELD, id="job held"
        ),
        pytest.param(
            a_node(a_device()),
            a_waiting(1, GIB, no_account="alice has no account on atlas."),
            Verdict.WAIT,
            Code.NO_ACCOUNT,
            id="no account",
        ),
        pytest.param(
            a_node(a_device(24 * GIB, 15 * GIB)),
            a_waiting(1, None),
            Verdict.WAIT,
            Code.COLD_START_ROOM,
            id="a first run wants 40 per cent of the device",
        ),
    ],
)
def test_one_job_against_one_node(node: Node, job: Waiting, verdict: Verdict, code: Code | None) -> None:
    decision = decide(a_snapshot(node), job)
    assert (decision.verdict, decision.code) == (verdict, code), decision.headline
    assert (decision.grant is None) == (verdict is Verdict.WAIT)
    assert decision.headline.endswith(".")


def test_a_held_queue_comes_before_everything_but_infeasible() -> None:
    snapshot = a_snapshot(queue_hold=Hold("bob", 1_699_999_000.0, why="moving house"))
    decision = decide(snapshot, a_waiting(1, 2 * GIB))
    assert decision.code is Code.HELD
    assert decision.headline == "The queue has been held by bob for 17 min, until released: moving house."


@pytest.mark.parametrize(
    ("running", "job", "code"),
    [
        pytest.param(a_running(7, GIB, exclusive=Exclusive.DEVICE), a_waiting(1, GIB), Code.EXCLUSIVE_DEVICE, id="had"),
        pytest.param(
            a_running(7, GIB), a_waiting(1, GIB, exclusive=Exclusive.DEVICE), Code.EXCLUSIVE_DEVICE, id="wanted"
        ),
        pytest.param(
            a_running(7, GIB, exclusive=Exclusive.MACHINE), a_waiting(1, GIB), Code.EXCLUSIVE_JOB, id="all had"
        ),
        pytest.param(
            a_running(7, device=None),
            a_waiting(1, GIB, exclusive=Exclusive.MACHINE),
            Code.EXCLUSIVE_JOB,
            id="all wanted, and a job without a device counts",
        ),
        pytest.param(
            a_running(7, 20 * GIB, GIB, cold=True), a_waiting(1, GIB), Code.COLD_START, id="a first run is settling"
        ),
    ],
)
def test_company(running: Any, job: Waiting, code: Code) -> None:
    decision = decide(a_snapshot(running=(running,)), job)
    assert decision.code is code
    assert "#7" in decision.headline


def test_a_device_for_one_job_at_a_time() -> None:
    node = a_node(a_device(exclusive_only=True))
    assert decide(a_snapshot(node), a_waiting(1, GIB)).verdict is Verdict.START
    taken = decide(a_snapshot(node, running=(a_running(7, GIB),)), a_waiting(1, GIB))
    assert taken.code is Code.EXCLUSIVE_DEVICE


@pytest.mark.parametrize(
    "device",
    [
        pytest.param(a_device(24 * GIB, 912 * MIB), id="the old call counts reserved memory as used"),
        pytest.param(a_device(24 * GIB, 8 * MIB, reserved=904 * MIB), id="the new call tells them apart"),
        pytest.param(a_device(24 * GIB, 103 * MIB), id="some use and no process"),
    ],
)
def test_alone_is_decided_by_jobs_not_by_bytes(device: Any) -> None:
    snapshot = a_snapshot(a_node(device))
    assert decide(snapshot, a_waiting(1, 8 * GIB, exclusive=Exclusive.DEVICE)).verdict is Verdict.START
    assert decide(snapshot, a_waiting(2, 22000 * MIB)).verdict is Verdict.START


def test_an_outsider_is_named_with_its_bytes() -> None:
    who = ((900, "u2", "python", 21000 * MIB),)
    node = a_node(a_device(24576 * MIB, 21300 * MIB, external=21000 * MIB, external_who=who))
    decision = decide(a_snapshot(node), a_waiting(1, 8000 * MIB))
    assert decision.code is Code.NO_ROOM
    assert decision.headline == (
        "Needs 7.8 GiB; room on gpu0 is 3.2 GiB; 20.5 GiB held by pid 900 (user u2), not a job of ours."
    )
    gone = a_node(a_device(24576 * MIB, 300 * MIB))
    assert decide(a_snapshot(gone), a_waiting(1, 8000 * MIB)).verdict is Verdict.START


def test_a_first_run_beside_outsiders_says_whose_memory_it_is() -> None:
    who = ((900, "u2", "python", 22 * GIB),)
    node = a_node(*(a_device(24 * GIB, 22 * GIB, index=n, external=22 * GIB, external_who=who) for n in (0, 1)))
    decision = decide(a_snapshot(node), a_waiting(1, None))
    assert decision.code is Code.COLD_START_ROOM
    assert "22.0 GiB held by pid 900 (user u2)" in decision.headline


def test_the_headline_names_the_most_room_and_who_grows() -> None:
    node = a_node(a_device(24 * GIB, 23 * GIB), a_device(24 * GIB, 16 * GIB, index=1))
    running = (a_running(38, 10 * GIB, 8 * GIB, device=1),)
    decision = decide(a_snapshot(node, running=running), a_waiting(42, 8 * GIB + 200 * MIB))
    assert decision.headline == "Needs 8.2 GiB; most room is 6.0 GiB on gpu1, after 2.0 GiB kept for #38 to grow."
    assert [c.label for c in decision.candidates] == ["gpu1", "gpu0"]


def test_figures_that_would_print_alike_get_more_digits() -> None:
    node = a_node(a_device(24 * GIB, 16 * GIB))
    decision = decide(a_snapshot(node), a_waiting(1, 8 * GIB + 4 * MIB))
    assert decision.headline == "Needs 8.004 GiB; room on gpu0 is 8.000 GiB."


def test_a_job_goes_to_the_card_with_room_and_a_larger_one_lists_each_card() -> None:
    node = a_node(a_device(24576 * MIB, 23000 * MIB), a_device(24576 * MIB, 1000 * MIB, index=1))
    start = decide(a_snapshot(node), a_waiting(1, 5000 * MIB))
    assert start.grant is not None
    assert start.grant.device == "GPU-1"
    assert start.grant.caps["GPU-1"] == 6750 * MIB
    wait = decide(a_snapshot(node), a_waiting(2, 24000 * MIB))
    rooms = {c.device: c.room[c.device or ""] for c in wait.candidates}
    assert rooms == {"GPU-0": 1576 * MIB, "GPU-1": 23576 * MIB}


def test_the_tightest_place_that_fits_is_taken() -> None:
    node = a_node(a_device(24 * GIB), a_device(24 * GIB, 12 * GIB, index=1), a_device(24 * GIB, 20 * GIB, index=2))
    grant = decide(a_snapshot(node), a_waiting(1, 8 * GIB)).grant
    assert grant is not None
    assert grant.device == "GPU-1"


def test_the_largest_whole_card_is_offered_alone() -> None:
    node = a_node(a_device(24 * GIB))
    whole = a_waiting(1, 24 * GIB)
    refused = decide(a_snapshot(node, knobs=Knobs()), whole)
    assert refused.code is Code.INFEASIBLE
    assert "Take the device alone to get all of it." in refused.headline
    alone = a_waiting(1, 24 * GIB, exclusive=Exclusive.DEVICE)
    grant = decide(a_snapshot(node, knobs=Knobs()), alone).grant
    assert grant is not None
    assert grant.charges["GPU-0"] == 24 * GIB - 24 * GIB // 100
    larger = a_waiting(1, 24 * GIB + 1, exclusive=Exclusive.DEVICE)
    assert decide(a_snapshot(node, knobs=Knobs()), larger).code is Code.INFEASIBLE


class TestFirstRun:
    def test_it_takes_all_that_is_left_of_the_emptiest_device(self) -> None:
        node = a_node(a_device(24 * GIB, 6 * GIB), a_device(24 * GIB, 2 * GIB, index=1))
        decision = decide(a_snapshot(node), a_waiting(1, None, None))
        grant = decision.grant
        assert grant is not None
        assert (grant.device, grant.charges["GPU-1"], grant.caps["GPU-1"]) == ("GPU-1", 22 * GIB, 22 * GIB)
        assert grant.basis == "cold_start"
        assert decision.headline == "Starts on gpu1 as a first run: takes the 22.0 GiB that are left."

    def test_the_smaller_of_booked_and_measured_room_counts(self) -> None:
        node = a_node(a_device(24 * GIB, declared=12 * GIB))
        grant = decide(a_snapshot(node), a_waiting(1, None)).grant
        assert grant is not None
        assert grant.charges["GPU-0"] == 12 * GIB

    @pytest.mark.parametrize(("used", "verdict"), [(60, Verdict.START), (61, Verdict.WAIT)])
    def test_forty_per_cent_of_declared_is_enough(self, used: int, verdict: Verdict) -> None:
        node = a_node(a_device(100 * MIB, used * MIB))
        assert decide(a_snapshot(node), a_waiting(1, None)).verdict is verdict

    @pytest.mark.parametrize(
        ("total", "used", "devices", "charge"),
        [
            pytest.param(64 * GIB, 0, 1, 32 * GIB, id="its share of one device in a machine with one"),
            pytest.param(64 * GIB, 0, 3, 16 * GIB, id="its share of one device in a machine with three"),
            pytest.param(64 * GIB, 44 * GIB, 1, 10 * GIB, id="half of what is left where that is less"),
            pytest.param(64 * GIB, 61 * GIB, 1, 2 * GIB, id="at least 2 GiB"),
            pytest.param(8 * GIB, 7 * GIB, 1, 858993459, id="at least a tenth of little RAM"),
        ],
    )
    def test_ram_is_charged_by_share(self, total: int, used: int, devices: int, charge: int) -> None:
        node = a_node(*(a_device(index=n) for n in range(devices)), ram=a_ram(total, used))
        grant = decide(a_snapshot(node), a_waiting(1, GIB, None)).grant
        assert grant is not None
        assert grant.charges["ram"] == charge

    def test_a_job_without_a_device_is_charged_the_share_of_one(self) -> None:
        node = a_node(a_device(), a_device(index=1), a_device(index=2), ram=a_ram(64 * GIB))
        grant = decide(a_snapshot(node), a_waiting(1, ram=None, gpu=False)).grant
        assert grant is not None
        assert (grant.charges, grant.basis) == ({"ram": 16 * GIB}, "cold_start")

    def test_unknown_ram_closes_no_device(self) -> None:
        first = a_waiting(1, GIB, None)
        starts = plan(a_snapshot(waiting=(first, a_waiting(2, GIB, GIB)))).decisions()
        assert [d.verdict for d in starts] == [Verdict.START, Verdict.START]

    def test_nobody_joins_in_the_same_cycle(self) -> None:
        first, second = plan(a_snapshot(waiting=(a_waiting(1, None), a_waiting(2, GIB, limit=10.0)))).decisions()
        assert first.verdict is Verdict.START
        assert second.code in (Code.COLD_START, Code.NO_ROOM)
        assert Code.COLD_START in {c.code for c in second.candidates[0].objections}


def test_without_a_gpu_library_the_refusal_says_so() -> None:
    decision = decide(a_snapshot(a_node()), a_waiting(1, GIB))
    assert decision.headline == "Can never start: it needs a GPU and no GPU is declared on atlas."


def test_a_leading_place_has_few_objections_then_late_ones_then_a_small_shortfall() -> None:
    def place(label: str, *checks: Check) -> Candidate:
        return Candidate("atlas", (label,), label, checks)

    def no(code: Code, short: int = 0) -> Check:
        return Check(code, False, "", shortfall=short)

    places = [
        place("both", no(Code.BOOKED, 1), no(Code.NO_ROOM, 1)),
        place("far", no(Code.NO_ROOM, 9)),
        place("near", no(Code.NO_ROOM, 2), no(Code.NO_ROOM, 1)),
        place("early", no(Code.HELD)),
        place("never", no(Code.INFEASIBLE)),
        place("aside", no(Code.SET_ASIDE)),
    ]
    assert [p.label for p in sorted(places, key=nearness)] == ["aside", "near", "far", "early", "both", "never"]


def test_passed_questions_are_kept_too_and_in_the_tables_order() -> None:
    decision = decide(a_snapshot(), a_waiting(1, GIB))
    ranks = [c.code.rank for c in decision.candidates[0].checks]
    assert ranks == sorted(ranks)
    assert {Code.HELD, Code.RAM_PRESSURE, Code.BOOKED, Code.NO_ROOM} <= {c.code for c in decision.candidates[0].checks}


def test_the_no_room_figures_add_up_exactly() -> None:
    running = (
        a_running(38, 9 * GIB + 7, 8 * GIB, margins={"GPU-0": 600 * MIB}),
        a_running(39, 5 * GIB, None),
    )
    node = a_node(a_device(24 * GIB, 13 * GIB + 5, reserved=904 * MIB))
    decision = decide(a_snapshot(node, running=running, knobs=Knobs()), a_waiting(1, 20 * GIB, margin=64 * MIB))
    f = check(decision, Code.NO_ROOM, "GPU-0").figures
    grown = [v for k, v in f.items() if k.startswith("growth_")]
    assert f["total"] - f["used"] - f["withheld"] - f["kept"] - sum(grown) == f["room"]  # type: ignore[operator, arg-type]
    assert f["free"] == f["total"] - f["used"] - f["withheld"]  # type: ignore[operator]
    booked = check(decision, Code.BOOKED, "GPU-0").figures
    assert booked["declared"] - booked["leased_38"] - booked["leased_39"] == booked["room"]  # type: ignore[operator]


def test_a_driver_that_hides_a_jobs_memory_leaves_its_reservation_whole() -> None:
    node = a_node(a_device(16376 * MIB, 14360 * MIB))
    running = (a_running(7, 12000 * MIB, None),)
    decision = decide(a_snapshot(node, running=running), a_waiting(1, 3000 * MIB))
    assert decision.verdict is Verdict.WAIT
    figures = check(decision, Code.NO_ROOM, "GPU-0").figures
    assert (figures["free"], figures["growth_7"]) == (2016 * MIB, 12000 * MIB)


class TestBurst:
    """Five jobs of 10000 MiB on a card of 24000 of which none has allocated yet."""

    node = a_node(a_device(24000 * MIB))
    jobs = tuple(a_waiting(n, 10000 * MIB) for n in range(1, 6))

    def test_two_start_and_the_others_wait_with_the_arithmetic(self) -> None:
        decisions = plan(a_snapshot(self.node, waiting=self.jobs)).decisions()
        assert [d.verdict.value for d in decisions] == ["start", "start", "wait", "wait", "wait"]
        figures = check(decisions[2], Code.NO_ROOM, "GPU-0").figures
        assert (figures["need"], figures["free"], figures["growth"], figures["room"]) == tuple(
            n * MIB for n in (10000, 24000, 20000, 4000)
        )

    def test_ten_seconds_later_nothing_new_starts(self) -> None:
        node = a_node(a_device(24000 * MIB, 6000 * MIB))
        running = (a_running(1, 10000 * MIB, 6000 * MIB), a_running(2, 10000 * MIB, 0))
        decision = plan(a_snapshot(node, running=running, waiting=self.jobs[2:])).decisions()[0]
        assert check(decision, Code.NO_ROOM, "GPU-0").figures["room"] == 4000 * MIB
        assert decision.verdict is Verdict.WAIT


class TestBattery:
    """The scenarios that other schedulers were put through, on one card of 24 GiB."""

    def test_a_foreign_20_gb_keeps_8_gb_waiting_and_says_whose(self) -> None:
        who = ((4711, "eve", "train", 20 * GIB),)
        node = a_node(a_device(24 * GIB, 20 * GIB, external=20 * GIB, external_who=who))
        decision = decide(a_snapshot(node, knobs=Knobs()), a_waiting(1, 8 * GIB))
        assert decision.verdict is Verdict.WAIT
        assert "20.0 GiB held by pid 4711 (user eve), not a job of ours" in decision.headline
        free = decide(a_snapshot(knobs=Knobs()), a_waiting(1, 8 * GIB))
        assert free.verdict is Verdict.START

    def test_80_gb_is_refused_at_once_with_what_the_card_could_give(self) -> None:
        decision = decide(a_snapshot(knobs=Knobs()), a_waiting(1, 80 * GIB))
        assert decision.code is Code.INFEASIBLE
        assert decision.headline == "Can never start. Needs 80.0 GiB; gpu0 can give at most 23.8 GiB."

    def test_two_14_gb_jobs_that_allocate_late_do_not_both_start(self) -> None:
        jobs = (a_waiting(1, 14 * GIB), a_waiting(2, 14 * GIB))
        first, second = plan(a_snapshot(waiting=jobs, knobs=Knobs())).decisions()
        assert (first.verdict, second.verdict) == (Verdict.START, Verdict.WAIT)
        assert "14.0 GiB leased by #1 leaves 10.0 GiB" in second.headline
        assert "14.0 GiB kept for #1 to grow" in check(second, Code.NO_ROOM, "GPU-0").sentence

    def test_one_that_declared_4_and_uses_20_leaves_no_room_for_8(self) -> None:
        node = a_node(a_device(24 * GIB, 20 * GIB))
        running = (a_running(1, 4 * GIB, 20 * GIB, basis="declared"),)
        decision = decide(a_snapshot(node, running=running, knobs=Knobs()), a_waiting(2, 8 * GIB))
        assert decision.verdict is Verdict.WAIT

    def test_three_7_gb_jobs_run_together(self) -> None:
        jobs = tuple(a_waiting(n, 7 * GIB, basis=Basis.DECLARED, margin=360 * MIB) for n in (1, 2, 3))
        decisions = plan(a_snapshot(waiting=jobs, knobs=Knobs())).decisions()
        assert [d.verdict for d in decisions] == [Verdict.START] * 3


SIZES = st.integers(0, 26).map(lambda n: n * GIB)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Draw a node with some devices, running jobs and a queue, unknowns included."""
    count = draw(st.integers(0, 3))
    devices = tuple(
        a_device(
            24 * GIB,
            draw(st.none() | st.integers(0, 24).map(lambda n: n * GIB)),
            index=n,
            declared=draw(st.sampled_from([24, 24, 12])) * GIB,
            age=draw(st.sampled_from([0.4, 0.4, 0.4, 9.0, None])),
        )
        for n in range(count)
    )
    running = tuple(
        a_running(
            100 + n,
            draw(SIZES),
            draw(st.none() | SIZES),
            device=draw(st.integers(0, count - 1)) if count else None,
            ram=draw(st.integers(0, 8)) * GIB,
            cold=draw(st.booleans()),
            elapsed=draw(st.integers(0, 9000)) * 1.0,
            limit=draw(st.none() | st.just(4000.0)),
        )
        for n in range(draw(st.integers(0, 3)))
    )
    waiting = tuple(
        a_waiting(
            n + 1,
            draw(st.none() | SIZES),
            draw(st.none() | st.integers(0, 40).map(lambda g: g * GIB)),
            gpu=draw(st.booleans()),
            exclusive=draw(st.sampled_from([Exclusive.NO, Exclusive.NO, Exclusive.MACHINE])),
            margin=draw(st.sampled_from([0, 64 * MIB, GIB])),
            priority=draw(st.integers(0, 1)),
            limit=draw(st.none() | st.sampled_from([60.0, 6000.0])),
        )
        for n in range(draw(st.integers(0, 6)))
    )
    ram = a_ram(64 * GIB, draw(st.sampled_from([0, 30, 60])) * GIB)
    return a_snapshot(a_node(*devices, ram=ram), running=running, waiting=waiting, knobs=Knobs())


@settings(max_examples=examples(120), deadline=None)
@given(snapshots())
def test_nothing_is_admitted_above_room_that_is_known(snapshot: Snapshot) -> None:
    by_job = {w.job: w for w in snapshot.waiting}
    now = snapshot
    for decision in plan(snapshot).decisions():
        if decision.grant is None:
            assert decision.verdict is Verdict.WAIT
            assert decision.code is not None
            continue
        node = now.nodes[0]
        for pool in (node.ram, *(d.pool for d in node.devices if d.uuid == decision.grant.device)):
            margin = decision.grant.margins[pool.pool]
            room = measured_room(now, pool, margin).room
            assert room is not None, "unknown memory was given away"
            assert pool.age is not None
            assert pool.age <= now.knobs.stale_seconds
            assert decision.grant.charges[pool.pool] <= room
            assert decision.grant.charges[pool.pool] <= booked_room(now, pool).room
        now = now.charged(started(Board(now), by_job[decision.job], decision.grant))


@settings(max_examples=examples(60), deadline=None)
@given(snapshots())
def test_the_same_snapshot_gives_the_same_answers(snapshot: Snapshot) -> None:
    assert plan(snapshot).decisions() == plan(snapshot).decisions()


def test_places_with_the_same_number_never_share_an_answer() -> None:
    """Two drivers may both number a device 0, and a job without a device has a place of its own."""
    node = a_node(a_device(24 * GIB, 24 * GIB, pool="A"), a_device(pool="B"))
    both = (a_waiting(1, 4 * GIB, ram=1), a_waiting(2, ram=1, gpu=False))
    on_device, without = plan(a_snapshot(node, waiting=both)).decisions()
    assert on_device.grant is not None
    assert on_device.grant.device == "B"
    assert not [c.sentence for one in without.candidates for c in one.checks if "gpu" in c.sentence.lower()]
