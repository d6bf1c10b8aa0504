"""From what a run was seen to use to the next charge, over runs that ended in every way: window, row, estimate."""

from __future__ import annotations

import pytest

from calibration.domain.deaths import Death
from calibration.domain.estimate import Basis, PoolEstimate, estimate
from calibration.domain.resources import MIB
from calibration.domain.sediment import Key, Row
from calibration.domain.windows import Window, close, observe

KEY = Key("w", "f1", "{}", "train.py")


def a_run(
    number: int, levels: list[int], ended_at: float, outcome: str, *, cap: int = 0, died_of: Death | None = None
) -> Row | None:
    """Return the row of a run that was seen once a second at these MiB."""
    window = Window(0.0)
    for at, level in enumerate(levels, start=1):
        window = observe(window, float(at), {"vram": level * MIB}, None)
    return close(
        window,
        ended_at,
        outcome,
        key=KEY,
        wall=float(number),
        cap={"vram": cap * MIB} if cap else {},
        died_of={"vram": died_of} if died_of else {},
    )


def asked(*rows: Row | None) -> PoolEstimate:
    kept = [row for row in rows if row is not None]
    return estimate(KEY, kept, needs=frozenset({"vram"})).pools["vram"]


COMPLETED = a_run(1, [4000, 10000, 10000], 3.5, "completed")
OUT_OF_MEMORY = a_run(2, [5000, 9800, 9800], 3.5, "cap_exceeded", cap=9800, died_of="cap")
CANCELLED = a_run(3, [0, 0], 2.0, "cancelled")
IMPORT_ERROR = a_run(4, [0, 0], 2.5, "failed")
BETWEEN_TWO_LOOKS = a_run(5, [], 0.4, "completed")
SEEN_ONCE = a_run(6, [30], 1.4, "completed")


def test_a_completed_run_founds_the_need_and_an_out_of_memory_end_raises_it_with_the_reason() -> None:
    assert (asked(COMPLETED).need, asked(COMPLETED).basis) == (10000 * MIB, Basis.MEASURED)
    after = asked(COMPLETED, OUT_OF_MEMORY)
    assert after.need == 14700 * MIB
    (counted,) = [rung for rung in after.rungs if rung.counted]
    assert "cap_exceeded" in counted.why
    assert "14.4 GiB" in counted.why


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(CANCELLED, id="cancelled at 2 s"),
        pytest.param(IMPORT_ERROR, id="an import error"),
        pytest.param(BETWEEN_TWO_LOOKS, id="completed between two looks"),
        pytest.param(SEEN_ONCE, id="seen in one look"),
    ],
)
def test_a_run_that_says_nothing_changes_nothing(more: Row | None) -> None:
    assert asked(COMPLETED, more) == asked(COMPLETED)
    assert asked(COMPLETED, OUT_OF_MEMORY, more) == asked(COMPLETED, OUT_OF_MEMORY)
    assert asked(more).need is None, "it founds nothing either"


def test_the_need_never_falls_below_what_a_completed_run_used() -> None:
    runs = (COMPLETED, OUT_OF_MEMORY, CANCELLED, IMPORT_ERROR, BETWEEN_TWO_LOOKS, SEEN_ONCE)
    assert all((asked(*runs[:count]).need or 0) >= 10000 * MIB for count in range(1, len(runs) + 1))
