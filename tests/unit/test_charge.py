from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.domain.charge import cap, growth, held
from calibration.domain.deaths import next_charge_after_death
from calibration.domain.ladder import Basis, margin_for
from calibration.domain.resources import GIB, MIB

MIBS = st.integers(0, 2**20).map(lambda n: n * MIB)


# Charges carry no margin, so a job at its learned peak is expected to grow by nothing.
@pytest.mark.parametrize(
    "charge, used, want",
    [
        (549, 543, 6),
        (2491, 2480, 11),
        (549, 549, 0),
        (2491, 2491, 0),
        (549, None, 549),
        (2049, 9000, 0),
        (549, 0, 549),
    ],
)
def test_growth_is_what_the_charge_leaves_over(charge, used, want):
    assert growth(charge * MIB, None if used is None else used * MIB) == want * MIB


def test_growth_comes_back_when_a_job_frees_memory_between_phases():
    assert [growth(1000, used) for used in (0, 1000, 300, 1000)] == [1000, 0, 700, 0]


def test_held_is_the_larger_of_granted_and_used():
    assert held(1000, 700) == 1000
    assert held(1000, 1300) == 1300
    assert held(1000, None) == 1000


def test_a_cap_stands_above_its_charge_and_not_above_the_device():
    assert cap(8000 * MIB, 24000 * MIB, Basis.MEASURED) == 10800 * MIB
    assert cap(1000 * MIB, 24000 * MIB, Basis.HINT) == 1512 * MIB
    assert cap(20000 * MIB, 24000 * MIB, Basis.DECLARED) == 24000 * MIB
    assert cap(1000 * MIB, None, Basis.MEASURED) == 1512 * MIB


def test_a_cold_start_is_capped_at_its_charge():
    assert cap(9600 * MIB, 24000 * MIB, Basis.COLD_START) == 9600 * MIB


def test_deaths_at_the_cap_raise_the_charge_each_time():
    charge, charges = 1000 * MIB, []
    for _ in range(4):
        limit = cap(charge, 100 * GIB, Basis.MEASURED)
        charge = next_charge_after_death(limit, charge, limit, "cap")
        charges.append(charge // MIB)
    assert charges == [2268, 4592, 9300, 18832]


def test_after_the_watchdog_the_charge_stands_on_use_and_on_the_charge():
    assert next_charge_after_death(10_000 * MIB, 6000 * MIB, 8100 * MIB, "watchdog") == 12_000 * MIB
    assert next_charge_after_death(1000 * MIB, 900 * MIB, 1412 * MIB, "watchdog") == 1412 * MIB
    assert next_charge_after_death(None, 900 * MIB, 1412 * MIB, "room") == 1412 * MIB
    assert next_charge_after_death(None, None, None, "cap") is None


@settings(max_examples=100)
@given(MIBS, MIBS)
def test_after_any_death_the_charge_is_higher(charge, used):
    limit = cap(charge, None, Basis.MEASURED)
    assert next_charge_after_death(used, charge, limit, "cap") > limit >= charge
    assert next_charge_after_death(used, charge, limit, "watchdog") > charge


@settings(max_examples=100)
@given(MIBS, st.none() | MIBS)
def test_what_is_held_is_used_plus_growth(charge, used):
    assert growth(charge, used) >= 0
    assert held(charge, used) == (used or 0) + growth(charge, used)


@pytest.mark.parametrize(
    "basis, margin",
    [("MEASURED", 64 * MIB), ("FITTED", 50), ("SCALED", 150), ("EDITED", 150), ("SIMILAR", 150),
     ("HINT", 150), ("DECLARED", 50), ("COLD_START", 0)],
)  # fmt: skip
def test_margins_per_rung(basis, margin):
    assert margin_for(Basis[basis], 1000) == margin


def test_the_margin_of_an_unknown_need_is_unknown():
    assert margin_for(Basis.HINT, None) is None
    assert margin_for(Basis.COLD_START, None) == 0
