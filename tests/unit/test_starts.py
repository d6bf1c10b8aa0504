"""Starts are charged at once and explained when they are read; a device whose memory is the node's RAM among them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calibration.domain.estimate import Estimate
from placement.domain.admission.decision import Code, Verdict
from placement.domain.admission.gate import decide
from placement.domain.planning.plan import plan
from placement.domain.world.snapshot import Node, Pool, Waiting
from tests.builders import EXACT, GIB, a_device, a_node, a_ram, a_running, a_snapshot, a_waiting, an_estimate


def test_a_burst_asks_at_no_place_until_somebody_reads_why(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr("placement.domain.planning.starts.decide_on", lambda *_: asked.append(1))
    jobs = tuple(a_waiting(n, GIB) for n in range(1, 21))
    made = plan(a_snapshot(a_node(a_device(), a_device(index=1)), waiting=jobs, knobs=EXACT))
    assert list(made.grants) == [w.job for w in jobs]
    assert not list(made.waits())
    assert not asked
    with pytest.raises(AttributeError):
        assert made.starts


def test_each_start_is_told_with_the_figures_of_its_turn() -> None:
    jobs = tuple(a_waiting(n, 5 * GIB, 2 * GIB) for n in range(1, 6))
    made = plan(a_snapshot(a_node(a_device()), waiting=jobs, knobs=EXACT))
    rooms = [decision.candidates[0].room["GPU-0"] for decision in made.starts]
    assert rooms == [24 * GIB - 5 * GIB * n for n in range(4)]
    booked = [next(c for c in d.candidates[0].checks if c.code is Code.BOOKED) for d in made.starts]
    assert [c.figures["leased"] for c in booked] == [5 * GIB * n for n in range(4)]
    assert [d.grant for d in made.starts] == list(made.grants.values())
    assert made.explain(2) is made.starts[1]
    assert made.explain(5).code is Code.BOOKED
    assert [w.job for w in made.waits()] == [5]


def test_first_runs_of_which_unlike_needs_are_proven_are_answered_apart() -> None:
    proven = an_estimate(None)
    proven = replace(proven, pools={**proven.pools, "vram": replace(proven.pools["vram"], at_least=15 * GIB)})
    jobs = (a_waiting(1, None), a_waiting(2, estimate=proven))
    here = a_running(90, 16 * GIB, 16 * GIB)
    made = plan(a_snapshot(a_node(a_device(24 * GIB, 16 * GIB)), running=(here,), waiting=jobs, knobs=EXACT))
    assert "(9.6 GiB)" in made.explain(1).headline
    assert "(15.0 GiB)" in made.explain(2).headline


class TestOneMemoryForBoth:
    """A device whose pool is the node's RAM, 128 GiB of it."""

    @staticmethod
    def node(used: int, **more: object) -> Node:
        ram: Pool = replace(a_ram(128 * GIB, used * GIB), **more)  # type: ignore[arg-type]
        device = a_device(128 * GIB)
        return a_node(replace(device, uuid="ram", pool=replace(ram, name="gpu0")), ram=ram)

    @staticmethod
    def job(vram: int | None, ram: int | None, proven: int = 0) -> Waiting:
        estimate: Estimate = an_estimate(vram, None if ram is None else ram * GIB)
        if proven:
            pool = replace(estimate.pools["vram"], at_least=proven * GIB)
            estimate = replace(estimate, pools={**estimate.pools, "vram": pool})
        return a_waiting(1, estimate=estimate)

    @pytest.mark.parametrize(
        ("used", "ram", "starts"),
        [(60, 40, False), (52, 40, True), (80, 0, False), (76, 0, True), (0, 128, True), (1, 128, False)],
    )
    def test_a_first_run_finds_its_ram_and_its_share_of_the_rest(self, used: int, ram: int, starts: bool) -> None:
        made = plan(a_snapshot(self.node(used), waiting=(self.job(None, ram),), knobs=EXACT))
        assert bool(made.grants) is starts
        decision = made.decisions()[0]
        assert decision.verdict is (Verdict.START if starts else Verdict.WAIT)
        if starts:
            assert decision.grant is not None
            assert decision.grant.charges == {"ram": (128 - used) * GIB}
        else:
            assert decision.code is Code.COLD_START_ROOM

    def test_the_refusal_names_both(self) -> None:
        headline = decide(a_snapshot(self.node(60), knobs=EXACT), self.job(None, 40)).headline
        assert "at least 40.0 GiB of RAM and 40% of the rest (75.2 GiB)" in headline
        assert "68.0 GiB is left" in headline

    def test_what_is_proven_of_the_device_counts_beside_the_ram(self) -> None:
        enough, little = a_snapshot(self.node(8), knobs=EXACT), a_snapshot(self.node(9), knobs=EXACT)
        job = self.job(None, 40, proven=80)
        assert decide(enough, job).verdict is Verdict.START
        assert decide(little, job).verdict is Verdict.WAIT

    def test_more_than_the_pool_has_can_never_start(self) -> None:
        made = plan(a_snapshot(self.node(0), waiting=(self.job(None, 129),), knobs=EXACT))
        assert made.decisions()[0].code is Code.INFEASIBLE

    def test_it_waits_while_memory_is_on_its_way_back(self) -> None:
        made = plan(a_snapshot(self.node(0, draining=True), waiting=(self.job(None, 4),), knobs=EXACT))
        assert not made.grants
        assert made.decisions()[0].code is Code.COLD_START_ROOM

    def test_a_run_whose_ram_alone_is_unknown_takes_a_share_and_not_all(self) -> None:
        decision = plan(a_snapshot(self.node(0), waiting=(self.job(8 * GIB, None),), knobs=EXACT)).starts[0]
        assert decision.grant is not None
        assert decision.grant.charges["ram"] < 128 * GIB
        assert "first run" not in decision.headline
