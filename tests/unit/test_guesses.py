"""The estimator's bench: what it asks, what it shows to a window, and how it counts."""

from __future__ import annotations

import pytest

from bench import estimator, other_rules
from bench.guesses import OTHERS, OWN, PRODUCT, Guess, asked_of, figures, looks, row_of, walk
from bench.world.submissions import Submission
from calibration.domain.resources import MIB


def a_run(number: int, peak: float, *, key: str = "net:b8", declared: float = 0.0) -> Submission:
    return Submission(number, 100.0 * number, 600.0, 1, key, peak, 1000.0, declared, 0.5, 60.0, 0.9, 0.5)


def walked(*rows: Submission, edits: float = 0.0, merged: bool = False) -> dict[str, list[Guess]]:
    asked = asked_of(rows, 0, edits, merged=merged)
    return walk([(one, row_of(one, shape, one.row.arrival)) for one, shape in asked], OWN | OTHERS)


def test_a_window_sees_the_peak_of_each_run() -> None:
    ((asked, shape),) = asked_of([a_run(1, 5000.0)], 0, 0.0)
    seen = list(looks(shape))
    row = row_of(asked, shape, wall=0.0)

    assert [second for second, _, _ in seen] == sorted({second for second, _, _ in seen})
    assert seen[-1][0] == 600.0
    assert row is not None
    assert row.peaks == {"vram": 5000 * MIB}
    assert row.samples["vram"] == len(seen)


def test_each_run_is_asked_about_before_it_is_known() -> None:
    found = walked(a_run(1, 4000.0, declared=3000.0), a_run(2, 5000.0), a_run(3, 4500.0), a_run(4, 1.0, key="net:b16"))

    assert [guess.guess for guess in found["largest + 512"]] == [None, 4512.0, 5512.0, None]
    assert [guess.guess for guess in found["last run"]] == [None, 4000.0, 5000.0, None]
    assert [guess.guess for guess in found[PRODUCT]] == pytest.approx([3150.0, 4064.0, 5064.0, 5750.0])
    assert [guess.basis for guess in found[PRODUCT]] == ["declared", "measured", "measured", "similar"]
    assert [guess.runs for guess in found[PRODUCT]] == [0, 1, 2, 0]


def test_an_edit_before_each_run_leaves_what_was_before_it() -> None:
    found = walked(a_run(1, 4000.0), a_run(2, 5000.0), edits=1.0)

    assert [guess.basis for guess in found[PRODUCT]] == ["cold_start", "edited"]
    assert found[PRODUCT][1].guess == pytest.approx(4600.0)


def test_merged_keys_are_one_key() -> None:
    found = walked(a_run(1, 4000.0), a_run(2, 5000.0, key="net:b16"), merged=True)

    assert (found[PRODUCT][1].basis, found["last run"][1].guess) == ("measured", 4000.0)


def test_figures_are_shares_of_what_was_needed() -> None:
    made = [Guess(110.0, 100.0, 3, ""), Guess(85.0, 100.0, 3, ""), Guess(95.0, 100.0, 3, ""), Guess(None, 100.0, 3, "")]
    found = figures(made)

    assert found is not None
    assert (found.count, found.low, found.far_low) == (3, 2 / 3, 1 / 3)
    assert (found.median, found.surplus) == pytest.approx((0.1, 10 / 300))
    assert figures(made[3:]) is None


def test_less_than_a_mib_too_low_is_not_too_low() -> None:
    assert Guess(99.5, 100.0, 3, "").error == 0.0


@pytest.mark.parametrize("rung", estimator.OTHER)
def test_other_rules_answer(rung: str) -> None:
    rules = estimator.OTHER[rung][0]()
    rows = [a_run(n, 4000.0 + n, key=f"net:b{2 + n % 2}", declared=100.0) for n in range(1, 9)]
    asked = asked_of(rows, 0, 0.5)
    found = walk([(one, row_of(one, shape, one.row.arrival)) for one, shape in asked], rules)

    assert all(made[-1].guess is not None for made in found.values())


def test_the_larger_of_what_was_seen_and_what_was_said() -> None:
    rule = "the larger of largest + 15% and declared + 5%"
    rows = [a_run(1, 4000.0), a_run(2, 1.0, key="net:b16", declared=8000.0), a_run(3, 1.0, key="net:b4", declared=1.0)]
    asked = asked_of(rows, 0, 0.0)
    found = walk([(one, row_of(one, shape, one.row.arrival)) for one, shape in asked], other_rules.similar())[rule]

    assert [guess.guess for guess in found] == [None, pytest.approx(8400.0), pytest.approx(4600.0)]
