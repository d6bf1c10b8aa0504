"""What a context costs is learned from runs that told what they held themselves."""

from __future__ import annotations

import pytest

from calibration.domain.contexts import Allowance, allowance, context_seen
from tests.builders import GIB, MIB


@pytest.mark.parametrize(
    "peak, reserved, seen",
    [
        pytest.param(8 * GIB + 426 * MIB, 8 * GIB, 426 * MIB, id="a context"),
        pytest.param(8 * GIB - MIB, 8 * GIB, None, id="the peak was between two looks"),
        pytest.param(8 * GIB + 20 * MIB, 8 * GIB, None, id="less than any context"),
        pytest.param(14 * GIB, 8 * GIB, None, id="something else was held, too"),
        pytest.param(None, 8 * GIB, None, id="not measured"),
        pytest.param(GIB, None, None, id="not told"),
        pytest.param(GIB, 0, None, id="nothing reserved: torch was not what used the device"),
    ],
)
def test_what_one_run_says(peak: int | None, reserved: int | None, seen: int | None) -> None:
    assert context_seen(peak, reserved) == seen


def test_few_runs_leave_the_knob_and_more_say_their_median_to_the_next_mib() -> None:
    assert allowance([400 * MIB, 400 * MIB], 512 * MIB) == Allowance(512 * MIB, 0)
    assert allowance([3000 * MIB, 400 * MIB + 1, 300 * MIB], 512 * MIB) == Allowance(401 * MIB, 3)


def test_only_the_newest_count() -> None:
    assert allowance([300 * MIB] * 20 + [900 * MIB] * 80, 512 * MIB) == Allowance(300 * MIB, 20)
