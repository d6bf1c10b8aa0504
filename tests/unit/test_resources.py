from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.domain.errors import BadAmount, BadDeviceSpec, BadKnob
from calibration.domain.knobs import KNOBS, Knobs
from calibration.domain.resources import (
    GIB,
    KIB,
    MIB,
    from_gb_capacity,
    from_gb_request,
    gib,
    known,
    parse_bytes,
    parse_device_spec,
    times,
    total,
)


@pytest.mark.parametrize(
    "text, want",
    [
        ("24 GB", 24_000_000_000),
        ("24GB", 24_000_000_000),
        ("24 GiB", 24 * GIB),
        ("24gib", 24 * GIB),
        ("24576", 24 * GIB),
        ("8e3", 8000 * MIB),
        ("1,5 GB", 1_500_000_000),
        ("0,500 GB", 500_000_000),
        ("1.5 TiB", 1536 * GIB),
        (" 2 TB ", 2_000_000_000_000),
        ("7 KB", 7000),
        ("7 KiB", 7 * KIB),
        ("1.2 B", 2),
        (".5 KiB", 512),
        ("0", 0),
        (512, 512 * MIB),
        (0.5, MIB // 2),
        ("1048576 TiB", 2**60),
    ],
)
def test_a_typed_amount_is_read_with_its_unit(text, want):
    assert parse_bytes(text) == want


@pytest.mark.parametrize(
    "text",
    ["", " ", "-1", "NaN", "nan GiB", "inf", "1e30", "1e9999", "1e-", "GiB", ".", ",", "1.2.3", "1,2,3",
     "5 apples", "5 G", "٣ GiB", "1,500 MB", "1048577 TiB", "9" * 41, True, None, [], {"a": 1}, float("nan"),
     float("inf"), -0.5],
)  # fmt: skip
def test_what_is_no_amount_is_refused_with_a_sentence(text):
    with pytest.raises(BadAmount) as refused:
        parse_bytes(text)
    assert len(str(refused.value)) > 20


def test_an_amount_that_reads_in_two_ways_names_both():
    with pytest.raises(BadAmount, match=r"1500 or 1\.500"):
        parse_bytes("1,500 MB")


def test_a_need_rounds_up_and_a_capacity_down():
    assert from_gb_request(Decimal("0.0000000015")) == 2
    assert from_gb_capacity(Decimal("0.0000000015")) == 1
    assert from_gb_request(0.1) == from_gb_capacity(0.1) == 100_000_000
    # 24 GB as a need is 22888.2 MiB; it does not fit where 22888 MiB are free.
    assert from_gb_request(24) == 24_000_000_000 > 22888 * MIB


@pytest.mark.parametrize("gb", [float("nan"), float("inf"), -1.0, 1e30])
def test_gigabytes_that_no_machine_has_are_refused(gb):
    with pytest.raises(BadAmount):
        from_gb_request(gb)


def test_one_unknown_part_makes_the_total_unknown_and_leaves_a_partial_sum():
    assert total([1, None, 2]) is None
    assert known([1, None, 2]) == 3
    assert total([]) == 0
    assert total([0, 0]) == 0


@pytest.mark.parametrize(
    "amount, want",
    [(None, "unknown"), (0, "0 MiB"), (24 * GIB, "24.0 GiB"), (int(8.23 * GIB), "8.2 GiB"),
     (512 * MIB, "512 MiB"), (300 * KIB, "300 KiB"), (7, "7 B"), (-2 * GIB, "-2.0 GiB")],
)  # fmt: skip
def test_amounts_as_people_read_them(amount, want):
    assert gib(amount) == want


def test_two_figures_that_differ_never_print_equal():
    assert gib(8 * GIB + 20 * MIB, 8 * GIB) == "8.02 GiB"
    assert gib(8 * GIB, 8 * GIB + 20 * MIB) == "8.00 GiB"
    assert gib(8 * GIB + 1, 8 * GIB) == "8,589,934,593 B"
    assert gib(8 * GIB, 8 * GIB) == "8.0 GiB"


@settings(max_examples=200)
@given(st.integers(0, 2**45), st.integers(0, 2**45))
def test_equal_text_means_equal_amount(one, other):
    assert (gib(one, other) == gib(other, one)) == (one == other)


@settings(max_examples=200)
@given(st.integers(0, 2**60))
def test_bytes_survive_being_typed(amount):
    assert parse_bytes(f"{amount} B") == amount


def test_factors_have_no_float_error():
    assert times(100, 1.1) == 110
    assert times(10, 1.15) == 12
    assert times(0, 1.5) == 0


def test_a_device_list_gives_one_size_per_device():
    assert parse_device_spec("2x24GiB,1x80GiB") == (24 * GIB, 24 * GIB, 80 * GIB)
    assert parse_device_spec("24GiB") == (24 * GIB,)
    assert parse_device_spec(" 1 x 8 GB ") == (8_000_000_000,)


@pytest.mark.parametrize("text", ["", "2x24GiB,", "0x24GiB", "1x0", "99x1GiB"])
def test_a_device_list_without_devices_is_refused(text):
    with pytest.raises(BadDeviceSpec):
        parse_device_spec(text)


def test_every_knob_has_a_unit_and_a_sentence():
    assert all(knob.unit and knob.help.endswith(".") for knob in KNOBS)
    assert len({knob.name for knob in KNOBS}) == len(KNOBS) > 20


def test_knobs_are_replaced_by_name_and_checked():
    knobs = Knobs.defaults().replace(settle_seconds=2, few_rows=3)
    assert (knobs.settle_seconds, knobs.few_rows, knobs.quantile) == (2, 3, 0.9)
    for wrong in (
        {"nonsense": 1},
        {"few_rows": 2.5},
        {"quantile": -0.1},
        {"quantile": float("nan")},
        {"quantile": 1.01},
        {"window_rows": 0},
        {"window_rows": 10**400},
        {"window_rows": 10**5000},
        {"settle_add_mib": 2**31},
        {"fitted_margin": float("inf")},
        {"few_rows": True},
    ):
        with pytest.raises(BadKnob):
            Knobs.defaults().replace(**wrong)


def test_an_error_without_words_says_its_docstring():
    assert str(BadAmount()).startswith("This is not an amount of memory.")


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(GIB - 1, "1.0 GiB"), (GIB - MIB, "1023 MiB"), (MIB - 1, "1 MiB"), (MIB - KIB, "1023 KiB"), (KIB - 1, "1023 B")],
)
def test_a_figure_just_below_a_unit_is_not_shown_as_1024_of_the_smaller_one(amount: int, shown: str) -> None:
    assert gib(amount) == shown
