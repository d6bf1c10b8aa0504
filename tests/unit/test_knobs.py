"""Knobs: one table, and overrides that say what is wrong with them."""

from __future__ import annotations

import pytest

from placement.domain.knobs import BY_NAME, TABLE, KnobError, Knobs


def test_every_knob_has_unit_help_and_a_default_that_it_accepts() -> None:
    for knob in TABLE:
        assert knob.unit, knob.name
        assert knob.help, knob.name
        assert knob.parse(knob.default) == getattr(Knobs(), knob.name)
        assert knob.env == f"TIDEGATE_{knob.name.upper()}"


def test_every_figure_has_a_least_and_a_most() -> None:
    assert [k.name for k in TABLE if not k.choices and (k.low is None or k.high is None)] == []


def test_overrides_are_taken_as_numbers_or_texts() -> None:
    knobs = Knobs.with_overrides({"stale_seconds": "2.5", "floor_vram_mib": "512", "overtaking": "none"})
    assert (knobs.stale_seconds, knobs.floor_vram_mib, knobs.overtaking) == (2.5, 512, "none")
    assert isinstance(knobs.floor_vram_mib, int)
    assert knobs.ram_high == 0.925


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"colour": 1}, "There is no knob 'colour'."),
        ({"stale_seconds": "soon"}, "stale_seconds must be a number in s, not 'soon'."),
        ({"stale_seconds": 0}, "stale_seconds must be from 0.5 to 3600 s, not 0."),
        ({"stale_seconds": True}, "stale_seconds must be a number in s, not True."),
        ({"ageing_hours": float("nan")}, "ageing_hours must be a number in h, not nan."),
        ({"ageing_hours": float("inf")}, "ageing_hours must be a number in h, not inf."),
        ({"floor_vram_mib": 1.5}, "floor_vram_mib must be a whole number in MiB, not 1.5."),
        ({"floor_vram_mib": -1}, "floor_vram_mib must be from 0 to 1073741824 MiB, not -1."),
        ({"floor_vram_mib": 2**31}, "floor_vram_mib must be from 0 to 1073741824 MiB, not 2147483648."),
        ({"floor_vram_mib": 10**5000}, "floor_vram_mib must be a number in MiB, not a number of more than 40 digits."),
        ({"keep_audit_days": 1e9}, "keep_audit_days must be from 1 to 36500 d, not 1000000000.0."),
        ({"grace_seconds": "x" * 99}, f"grace_seconds must be a number in s, not '{'x' * 41}…."),
        ({"overtaking": "always"}, "overtaking must be one of easy, none, not 'always'."),
        ({"ram_low": 0.95}, "ram_low (0.95) must be below ram_high (0.925)."),
    ],
)
def test_a_wrong_override_is_named_with_what_would_be_right(overrides: dict[str, object], said: str) -> None:
    with pytest.raises(KnobError) as caught:
        Knobs.with_overrides(overrides)
    assert str(caught.value) == said


def test_all_wrong_overrides_are_named_at_once() -> None:
    with pytest.raises(KnobError, match=r"grace_seconds.*log_limit_mib"):
        Knobs.with_overrides({"grace_seconds": "x", "log_limit_mib": "y"})


def test_the_table_is_found_by_name() -> None:
    assert BY_NAME["cold_start_share"].default == 0.40
