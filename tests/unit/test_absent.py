from __future__ import annotations

import pytest

from tests.unit.test_estimate import row, vram


def whys(rows, workers=1, **more):
    """Return why each rung without a number has none."""
    return {rung.basis.word: rung.why for rung in vram(rows, workers, **more).rungs if rung.bytes is None}


def test_of_what_never_ran_each_rung_says_what_it_lacks():
    assert whys([]) == {
        "measured": "no run like this was measured yet",
        "fitted": "needs two worker counts, none was measured",
        "scaled": "needs a run that was measured at any worker count",
        "edited": "no run from before the sources changed",
        "similar": "no run of this script was measured",
        "hint": "no workload's author set a preset",
        "declared": "nothing was declared",
        "cold_start": "nothing is known: it is watched first",
    }


@pytest.mark.parametrize(
    "rows, workers, basis, why",
    [
        ([row(300, workers=2)], 4, "measured", "no run with 4 workers was measured, only with 2"),
        (
            [row(300, workers=1), row(400, workers=2), row(500, workers=8)],
            4,
            "measured",
            "no run with 4 workers was measured, only with 1, 2 and 8",
        ),
        ([row(300, workers=2)], 4, "fitted", "needs two worker counts, only 2 was measured"),
        (
            [row(300), row(400, workers=2)],
            1,
            "scaled",
            "several worker counts were measured, so a line is fitted",
        ),
        ([row(300)], 1, "edited", "the sources have not changed since"),
        ([row(300, fingerprint="h0")], 1, "measured", "not run since its sources changed"),
        (
            [row(300, fingerprint="h0", completed=False)],
            1,
            "edited",
            "no run from before the sources changed completed",
        ),
        ([row(300, completed=False)], 1, "measured", "its one run did not complete"),
        ([row(300, completed=False), row(200, completed=False, at=1)], 1, "measured", "none of its 2 runs completed"),
        ([row(300, atypical=True)], 1, "measured", "its runs are marked as not typical"),
        ([row(300, open=True)], 1, "measured", "its first run still goes on"),
        ([row()], 1, "measured", "its runs were over before anything was measured"),
        ([row(300)], 1, "cold_start", "not needed"),
    ],
)
def test_a_rung_without_a_number_says_why(rows, workers, basis, why):
    assert whys(rows, workers)[basis] == why


def test_every_rung_says_something_whatever_is_known():
    for rows in ([], [row(300)], [row(300, completed=False)], [row(200), row(300, workers=3)]):
        assert all(rung.why for rung in vram(rows).rungs)


@pytest.mark.parametrize(
    "seen, asked, basis, why",
    [
        ([row(300, workers=1)], 4, "scaled", "300 MiB at 1 worker, scaled to 4"),
        ([row(300, workers=2)], 4, "scaled", "300 MiB at 2 workers, scaled to 4"),
        ([row(300, workers=1), row(900, workers=3)], 5, "fitted", "a line through 1, 3 workers"),
    ],
)
def test_a_rung_with_a_number_counts_workers_in_words(seen, asked, basis, why):
    told = {rung.basis.word: rung.why for rung in vram(seen, asked).rungs if rung.bytes is not None}
    assert told[basis].startswith(why)
