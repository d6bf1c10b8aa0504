"""Knobs are checked when they are turned, and a wrong one in the table never stops the loop."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from placement import snapshots
from placement.domain.errors import Refused
from placement.models import AuditEntry, KnobOverride
from placement.services import tuning

pytestmark = pytest.mark.django_db


def test_a_turned_knob_is_in_force_and_on_record() -> None:
    tuning.turn(None, "grace_seconds", "3")
    assert snapshots.knobs_now()[0].grace_seconds == 3
    assert AuditEntry.objects.get(action="turn_knob").detail == {"before": None, "after": 3}
    tuning.turn(None, "grace_seconds", None)
    assert snapshots.knobs_now()[0].grace_seconds == 10


@pytest.mark.parametrize(
    "name, text",
    [
        ("grace_seconds", "soon"),
        ("grace_seconds", "-1"),
        ("leftovers", "maybe"),
        ("no_such", "1"),
        ("quantile", "[]"),
        ("quantile", "1.5"),
        ("window_rows", "0"),
        ("few_rows", "9" * 400),
        ("keep_audit_days", "9" * 400),
        ("measured_margin_mib", "9" * 400),
        ("keep_run_days", "1e300"),
        ("grace_seconds", "[" * 5000),
    ],
)
def test_a_wrong_value_is_refused_with_a_sentence(name: str, text: str) -> None:
    with pytest.raises(Refused, match=r"\w+ .*\."):
        tuning.turn(None, name, text)
    assert not KnobOverride.objects.exists()


@pytest.mark.parametrize("text, kept", [("1_000", 1000), ("٣", 3), ("3", 3)])
def test_what_is_kept_is_the_number_that_was_understood(text: str, kept: int) -> None:
    assert tuning.turn(None, "disk_low_mib", text) == f"disk_low_mib is {kept} from the next decision on."
    assert KnobOverride.objects.get().value == kept


def test_two_that_bound_one_another_are_judged_by_what_is_in_force() -> None:
    tuning.turn(None, "ram_low", "0.5")
    assert tuning.turn(None, "ram_high", "0.6") == "ram_high is 0.6 from the next decision on."
    assert [getattr(snapshots.knobs_now()[0], name) for name in ("ram_low", "ram_high")] == [0.5, 0.6]
    with pytest.raises(Refused, match=r"ram_low \(0.85\) must be below ram_high \(0.6\)"):
        tuning.turn(None, "ram_low", None)
    with pytest.raises(Refused, match="must be below"):
        tuning.turn(None, "ram_low", "0.7")


def test_a_wrong_row_is_left_out_and_the_others_hold() -> None:
    KnobOverride.objects.create(name="ram_low", value=2, who="x")
    KnobOverride.objects.create(name="grace_seconds", value=4, who="x")
    knobs, _ = snapshots.knobs_now()
    assert (knobs.ram_low, knobs.grace_seconds) == (0.85, 4)


def test_the_command_lists_what_was_turned() -> None:
    def said(*arguments: str) -> str:
        out = StringIO()
        call_command("knob", *arguments, stdout=out)
        return out.getvalue()

    assert "Every knob is at its default" in said()
    said("grace_seconds", "3")
    assert said().startswith("grace_seconds = 3")
    assert said("grace_seconds").startswith("grace_seconds = 3 s (default 10, set by tidegate): ")


@pytest.mark.parametrize("value", [[1], {"a": 1}, True, "x", 1e30, [[]], -5])
@pytest.mark.parametrize("name", ["floor_ram_mib", "leftovers", "context_allowance_mib", "quantile"])
def test_whatever_a_row_holds_never_stops_the_loop(name: str, value: object) -> None:
    KnobOverride.objects.create(name=name, value=value, who="x")
    KnobOverride.objects.create(name="grace_seconds", value=4, who="x")
    assert snapshots.knobs_now()[0].grace_seconds == 4
