from __future__ import annotations

import pytest

from calibration.domain.preallocation import looks_preallocated, took_what_it_was_given
from calibration.domain.resources import MIB
from calibration.domain.windows import Window, observe


def run(levels):
    window = Window(0.0)
    for at, level in enumerate(levels, start=1):
        window = observe(window, float(at), {"vram": None if level is None else level * MIB}, None)
    return window


@pytest.mark.parametrize(
    "levels, total, free",
    [
        ([0, 9000, 18000, 18000, 18000, 18000], 24000, 24000),
        ([0, 9000, 9000, 9000, 9000], 24000, 12000),
        ([0, 0, 0, 0, 300, 18300, 18300, 18300, 18300, 4000], 24000, 24000),
        ([0, 21600, 21600, 21600, 21600], 24000, None),
    ],
)
def test_a_share_taken_at_once_and_kept_is_a_preallocation(levels, total, free):
    assert looks_preallocated(run(levels), total * MIB, None if free is None else free * MIB)


@pytest.mark.parametrize(
    "levels, total, free",
    [
        ([0, 4000, 8000, 12000, 16000, 18000, 18000], 24000, 24000),  # in stages
        ([0, 18000, 3000, 18000, 3000, 18000], 24000, 24000),  # not flat
        ([0, 11000, 11000, 11000, 11000], 24000, 24000),  # no usual share
        ([0, 18000], 24000, 24000),  # ended too early to be flat
        ([0, 18000, 18000, 18000, 18000], None, None),  # nothing to compare with
        ([None, None, None], 24000, 24000),
        ([0, 0, 0, 0], 24000, 24000),
    ],
)
def test_other_shapes_are_needs(levels, total, free):
    assert not looks_preallocated(run(levels), total and total * MIB, free and free * MIB)


def test_a_level_at_its_own_cap_counts_when_a_receipt_covers_it():
    window = run([0, 6300, 6300, 6300, 6300])
    assert took_what_it_was_given(window, 24000 * MIB, 24000 * MIB, 6000 * MIB)
    assert not took_what_it_was_given(window, 24000 * MIB, 24000 * MIB, None)


def test_a_receipt_below_the_level_covers_nothing():
    window = run([0, 18000, 18000, 18000, 18000])
    assert looks_preallocated(window, 24000 * MIB, 24000 * MIB)
    assert not took_what_it_was_given(window, 24000 * MIB, 24000 * MIB, 6000 * MIB)
    assert took_what_it_was_given(window, 24000 * MIB, 24000 * MIB, 24000 * MIB)
