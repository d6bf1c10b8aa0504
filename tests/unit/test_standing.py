"""Why a kept run counts or does not, in the words of its page; and guesses held against what was used."""

from __future__ import annotations

import dataclasses

import pytest

from calibration.domain.estimate import estimate
from calibration.domain.knobs import DEFAULTS
from calibration.domain.sediment import Key, Row
from calibration.domain.standing import SAID, Kept, Standing, standings
from placement.domain.submitting.guesses import Guess, remark

GIB = 1 << 30
KEY = Key("train", "new", "{}", "workload: train")


def row(gib: float = 2, at: float = 0.0, **more: object) -> Row:
    fields: dict[str, object] = {"key": KEY, "completed": True, "peaks": {"ram": int(gib * GIB)}, "at": at, **more}
    return Row(**fields)  # type: ignore[arg-type]


def words(*kept: Kept, kind: str = "ram") -> list[str]:
    return [s.value for s in standings(kept, kind, "new")]


def test_each_row_says_how_it_stands() -> None:
    old = dataclasses.replace(KEY, fingerprint="old")
    assert words(
        Kept(row()),
        Kept(row(completed=False, outcome="failed")),
        Kept(row(key=old)),
        Kept(row(key=old, atypical=True)),
        Kept(row(), forgotten=True),
        Kept(row(peaks={"vram": GIB})),
    ) == ["counts", "bound", "edited", "atypical", "forgotten", "unseen"]


def test_a_guess_by_the_kernel_stands_only_where_nothing_was_sampled() -> None:
    assert words(Kept(row(by_kernel=True))) == ["counts"]
    assert words(Kept(row(by_kernel=True)), Kept(row())) == ["guess", "counts"]
    assert words(Kept(row(by_kernel=True)), Kept(row(), forgotten=True)) == ["counts", "forgotten"]


def test_beyond_the_window_of_its_worker_count_a_run_is_older() -> None:
    knobs = dataclasses.replace(DEFAULTS, window_rows=2)
    kept = [Kept(row(at=-n)) for n in range(3)] + [Kept(row(at=-9, key=dataclasses.replace(KEY, workers=2)))]
    assert [s.value for s in standings(kept, "ram", "new", knobs)] == ["counts", "counts", "older", "counts"]


def test_what_is_said_to_be_retired_does_not_move_the_estimate() -> None:
    """The words and the estimator agree: without the retired rows the figure is the same."""
    knobs = dataclasses.replace(DEFAULTS, window_rows=2)
    kept = [
        Kept(row(2)),
        Kept(row(9, atypical=True)),
        Kept(row(3, at=-1)),
        Kept(row(8, at=-2)),  # older
        Kept(row(7, at=-3, by_kernel=True)),
    ]
    found = standings(kept, "ram", "new", knobs)
    left = [one.row for one, standing in zip(kept, found, strict=True) if not standing.retired]
    assert [s.retired for s in found] == [False, True, False, True, True]
    both = [estimate(KEY, rows, needs=frozenset({"ram"}), knobs=knobs).need for rows in ([k.row for k in kept], left)]
    assert both == [3 * GIB, 3 * GIB]
    assert all(SAID[s] or s is Standing.COUNTS for s in Standing)


@pytest.mark.parametrize(
    "guesses, said",
    [
        ([], None),
        ([Guess(None, 9 * GIB)], None),
        ([Guess(4 * GIB, None)], None),
        ([Guess(4 * GIB, 3 * GIB)], None),
        ([Guess(4 * GIB, 9 * GIB)], "declared 4.0 GiB, 9.0 GiB was used in 1 run"),
        ([Guess(4 * GIB, 9 * GIB)] * 14, "declared 4.0 GiB, 9.0 GiB was used in 14 runs"),
        ([Guess(4 * GIB, 3 * GIB), Guess(2 * GIB, 5 * GIB)], "declared 4.0 GiB, 5.0 GiB was used in 1 of 2 runs"),
        ([Guess(24 * GIB, 9 * GIB)] * 2, "declared 24.0 GiB, at most 9.0 GiB was used in 2 runs"),
        ([Guess(24 * GIB, 9 * GIB, completed=False)], None),  # it may have been on its way there
        ([Guess(10 * GIB, 9 * GIB), Guess(4 * GIB, 9 * GIB)], None),  # corrected since
    ],
)
def test_a_guess_is_held_against_what_was_used(guesses: list[Guess], said: str | None) -> None:
    found = remark(guesses)
    assert (found.sentence if found else None) == said


def test_the_authors_preset_is_held_against_it_too() -> None:
    found = remark([Guess(None, 9 * GIB)], "its preset says", 4 * GIB)
    assert found is not None
    assert found.sentence == "its preset says 4.0 GiB, 9.0 GiB was used in 1 run"
    assert found.tone == "stop"
