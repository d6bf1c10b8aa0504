"""The bench's own rules against an independent simulator of the same rules.

The figures were obtained from an independent simulator (another author's code, another event loop) on exactly these
rows. ``python -m bench.replay --trace synthetic:7 --jobs 300 --compare PATH`` runs such a simulator beside ours again.
"""

from __future__ import annotations

import hashlib

import pytest

from bench.world import synthetic
from bench.world.compare import Pair
from bench.world.setting import Setting

FIGURES = {  # makespan and mean JCT in hours, kills by lack of memory
    "exclusive-fifo": (133.196, 48.963, 0),
    "declared-fifo": (68.077, 18.032, 5),
    "declared-skip": (56.594, 8.092, 9),
    "naive-free-now": (73.744, 11.437, 99),
    "carma": (66.157, 16.315, 10),
    "gate-reference": (65.087, 14.822, 2),
    "gate-reference-idle": (140.046, 52.378, 1),
    "gate-fifo": (67.099, 18.996, 1),
    "gate-skip": (60.186, 8.397, 1),
    "gate-easy": (60.069, 11.269, 0),
    "oracle-fifo": (43.136, 3.356, 0),
    "oracle-easy": (42.938, 3.694, 0),
    "oracle-lpt": (42.708, 4.496, 0),
    "oracle-big": (43.136, 4.561, 0),
    "oracle-sjf": (45.666, 2.689, 0),
}
ROWS = "synthetic:7"


def test_the_rows_are_still_those_that_the_simulator_was_given() -> None:
    text = repr([(row.arrival, row.duration, row.peak, row.declared) for row in synthetic.training(7)[:300]])

    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "4376f7239f7b6cf3"


@pytest.mark.parametrize("name", FIGURES)
def test_a_rule_gives_what_the_other_simulator_gives(name: str) -> None:
    tally = Setting(ROWS, limit=300, gangs=True).play(name)
    span, jct, kills = FIGURES[name]

    assert tally.makespan / 3600 == pytest.approx(span, rel=0.01)
    assert tally.mean_jct / 3600 == pytest.approx(jct, rel=0.01)
    assert tally.oom_kills == pytest.approx(kills, abs=1)


def test_two_that_differ_are_seen_to_differ() -> None:
    assert Pair("any", (100.0, 10.0, 0), (100.0, 9.0, 0)).apart == pytest.approx(1 / 9)
