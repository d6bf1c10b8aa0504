"""What the replay prints: a table, JSON, and which goals are met."""

from __future__ import annotations

import json
import sys
from collections import Counter

import pytest

from bench import replay
from bench.world.goals import Goal, goals, with_outsiders
from bench.world.runs import Job
from bench.world.setting import Doubts, Setting, edited
from bench.world.shapes import shape_of
from bench.world.synthetic import training
from bench.world.tally import Tally

SMALL = ["--trace", "synthetic:1", "--jobs", "25"]


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["replay", *SMALL, *arguments])
    return replay.main()


def test_a_replay_prints_its_conditions_and_a_row_per_policy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--policies", "exclusive-fifo,oracle-easy", "--knob", "settle_seconds=30") == 0

    out = capsys.readouterr().out
    assert "a row of n devices is n jobs of one" in out
    assert "settle_seconds=30" in out
    assert "| exclusive-fifo |" in out
    assert "| oracle-easy |" in out


def test_json_tells_of_outsiders_and_of_goals_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(monkeypatch, "--goals", "--external", "1", "--json")

    told = json.loads(capsys.readouterr().out)
    assert {"product", "carma", "oracle-lpt"} <= told["policies"].keys()
    assert set(told["outsiders"]["1"]["policies"]) == {"product", "declared-skip"}
    assert {goal["goal"] for goal in told["goals"]} == {"G1", "G2", "G3", "G4", "G5"}
    assert code == (0 if all(goal["met"] for goal in told["goals"]) else 1)


def test_a_policy_that_there_is_not_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"no policy 'magic'; there are product, .*carma"):
        Setting("synthetic:1").policy("magic")


def test_a_goal_says_by_how_much_it_is_missed() -> None:
    assert Goal("G1", "makespan", 1.06, 1.05).line() == "NO  G1 makespan: 1.060, at most 1.05 (0.01 too much)"
    assert Goal("G1", "makespan", 1.01, 1.05).line() == "yes G1 makespan: 1.010, at most 1.05 (0.04 to spare)"


def tally(name: str, makespan: float = 100.0, jct: float = 10.0, wait: float = 5.0, ooms: int = 0) -> Tally:
    made = Tally(name, makespan=makespan, mean_jct=jct, longest_wait=wait)
    made.ooms["own"] = ooms
    return made


@pytest.mark.parametrize("exclusive, most", [(180.0, 1.25), (130.0, 1.1)])
def test_limits_are_wider_where_whole_devices_take_much_longer(exclusive: float, most: float) -> None:
    names = ("product", "declared-skip", "naive-free-now", "carma", "gate-reference", "gate-fifo", "oracle-easy")
    found = goals({**{name: tally(name) for name in names}, "exclusive-fifo": tally("exclusive-fifo", exclusive)}, 100)

    assert next(goal.limit for goal in found if goal.what == "mean JCT / clairvoyant EASY") == most


def test_outsiders_are_judged_by_the_worst_seed() -> None:
    seeds = [
        {"product": tally("product", 103, ooms=2), "declared-skip": tally("declared-skip", ooms=100)},
        {"product": tally("product", 107, ooms=1), "declared-skip": tally("declared-skip", ooms=5)},
    ]

    assert [(goal.got, goal.met) for goal in with_outsiders(tally("product"), seeds)] == [(1.07, False), (0.2, False)]


def test_edits_are_of_so_many_submissions_and_of_the_script_that_is_submitted() -> None:
    rows = training(1)
    some = edited(rows, 30, 0)

    assert edited(rows, 0, 0) == rows
    assert max(row.edition for row in some) > 10
    last = {row.script: row.edition for row in some}
    assert sum(last.values()) / len(rows) == pytest.approx(0.3, abs=0.05)
    assert {row.script: row.edition for row in edited(rows, 100, 0)} == dict(Counter(row.script for row in rows))


def test_a_wrong_duration_is_wrong_by_the_same_factor_each_time_and_by_no_more_than_said() -> None:
    doubts = Doubts(3.0, 0)
    jobs = [Job(row, shape_of(row, "trace", 0)) for row in training(1)[:200]]
    factors = [doubts.of(job) for job in jobs]

    assert factors == [Doubts(3.0, 0).of(job) for job in jobs]
    assert 1 / 3 <= min(factors) < 0.4 < 2.5 < max(factors) <= 3
