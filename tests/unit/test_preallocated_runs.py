"""A framework that grabs a share of the card: what is seen is told as what it is, and never silently a need."""

from __future__ import annotations

from calibration.domain.estimate import PoolEstimate, estimate
from calibration.domain.preallocation import looks_preallocated, took_what_it_was_given
from calibration.domain.resources import MIB
from calibration.domain.sediment import Key, Row
from calibration.domain.windows import Window, close, observe
from placement.domain.containing.environment import framework_variables

KEY = Key("jax", "f1", "{}", "train.py")
TOTAL = 24000 * MIB
SEEN = [(24000, [0, 9000, 18000, 18000, 18000]), (12000, [0, 9000, 9000, 9000, 9000]), (12000, [0, 9000, 9000, 9000])]
"""What was free at the start, and the level each second, of three runs of one command (MiB)."""


def runs(receipt: int | None) -> list[Row]:
    found = []
    for number, (free, levels) in enumerate(SEEN):
        window = Window(0.0)
        for at, level in enumerate(levels, start=1):
            window = observe(window, float(at), {"vram": level * MIB}, None)
        assert looks_preallocated(window, TOTAL, free * MIB)
        covered = took_what_it_was_given(window, TOTAL, free * MIB, receipt)
        note = "" if covered else "vram: it may be a preallocation, not a need"
        row = close(
            window, len(levels) + 0.2, "completed", key=KEY, wall=float(number), preallocated=covered, note=note
        )
        assert row is not None
        found.append(row)
    return found


def learned(rows: list[Row]) -> PoolEstimate:
    return estimate(KEY, rows, needs=frozenset({"vram"})).pools["vram"]


def test_what_a_run_took_under_an_acknowledged_cap_is_no_need_of_its_own() -> None:
    pool = learned(runs(receipt=18000 * MIB))
    assert pool.need == 13500 * MIB
    assert any("took what it was given" in note for note in pool.notes)


def test_without_a_receipt_the_level_stands_and_the_note_says_what_it_may_be() -> None:
    pool = learned(runs(receipt=None))
    assert pool.need == 18000 * MIB
    assert pool.notes == ("it may be a preallocation, not a need",)


def test_the_environment_carries_the_share_of_the_cap_and_keeps_what_the_user_set() -> None:
    cap = 6000 * MIB * 27 // 20
    ours = framework_variables(cap, TOTAL, {}, 512 * MIB).variables
    assert ours["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert 0 < float(ours["XLA_PYTHON_CLIENT_MEM_FRACTION"]) <= (cap - 512 * MIB) / TOTAL
    kept = framework_variables(cap, TOTAL, {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".9"}, 512 * MIB)
    assert "XLA_PYTHON_CLIENT_MEM_FRACTION" not in kept.variables
    assert kept.kept == {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".9"}, "listed, so that it can be shown"
