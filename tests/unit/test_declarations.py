from __future__ import annotations

import math
from typing import Any

import pytest

from placement.domain.declaring.declarations import device_effects, device_problems, node_problems
from placement.domain.world.devices import Backend, Device, Kind

GIB = 2**30


def test_the_effect_of_less_than_is_leased_says_by_how_much_and_until_when() -> None:
    said = device_effects({"declared": 10 * GIB}, before=24 * GIB, leased=14 * GIB, jobs=2)

    assert said == [
        "2 jobs hold 14.0 GiB there; they go on; 4.0 GiB more than declared: nothing new starts until they end."
    ]


@pytest.mark.parametrize(
    ("changes", "leased", "jobs", "said"),
    [
        ({"declared": 14 * GIB}, 14 * GIB, 1, "1 job holds 14.0 GiB there; it goes on; 0 MiB of 14.0 GiB"),
        ({"declared": 20 * GIB}, 0, 0, "20.0 GiB instead of 24.0 GiB; no job holds anything there."),
        ({"exclusive_only": True}, 2 * GIB, 1, "1 job holds 2.0 GiB there; it goes on. One job at a time"),
        ({"exclusive_only": False}, 0, 0, "Jobs may share it from now on."),
        ({"draining": True}, 2 * GIB, 1, "Nothing new starts there; 1 job holds 2.0 GiB there and it goes on."),
        ({"draining": False}, 0, 0, "Jobs may start there again."),
    ],
)
def test_the_effect_of_an_edit(changes: dict[str, object], leased: int, jobs: int, said: str) -> None:
    assert device_effects(changes, before=24 * GIB, leased=leased, jobs=jobs)[0].startswith(said)


def test_what_stays_as_it_is_has_no_effect() -> None:
    assert device_effects({"declared": 24 * GIB, "name": "x"}, before=24 * GIB, leased=1, jobs=1) == []


def test_exactly_what_the_device_reports_can_be_declared_and_a_byte_more_cannot() -> None:
    total = 24 * GIB

    def asked(amount: int) -> dict[str, str]:
        return device_problems({"declared": amount}, label="gpu0", total=total, taken=frozenset())

    assert asked(total) == {}
    assert asked(total + 1) == {
        "declared": "gpu0 has 25,769,803,776 B; 25,769,803,777 B cannot be declared.",
    }


def test_what_is_too_much_for_any_device_is_not_told_to_be_too_little() -> None:
    found = device_problems({"declared": 2**70}, label="gpu0", total=None, taken=frozenset())
    assert found["declared"].endswith(" are more than any machine has.")


@pytest.mark.parametrize(
    "changes",
    [
        {"declared": 0},
        {"declared": -1},
        {"declared": math.nan},
        {"declared": 1e30},
        {"declared": True},
        {"declared": [1]},
        {"declared": None},
        {"name": ""},
        {"name": "x" * 41},
        {"name": "a\nb"},
        {"name": "gpu1"},
        {"name": 3},
        {"draining": "yes"},
        {"exclusive_only": 1},
        {"uuid": "GPU-x"},
    ],
)
def test_what_a_device_cannot_be_declared_with(changes: dict[str, object]) -> None:
    found = device_problems(changes, label="gpu0", total=None, taken=frozenset({"gpu1"}))

    assert list(found) == list(changes)


@pytest.mark.parametrize(
    ("changes", "marks", "field"),
    [
        ({"ram_declared": 65 * GIB}, (None, None), "ram_declared"),
        ({"ram_high": 1.5}, (1.5, 0.5), "ram_high"),
        ({"ram_high": 0.9}, (0.9, None), "ram_low"),
        ({"ram_low": 0.95}, (0.9, 0.95), "ram_low"),
        ({"ram_low": "x"}, (0.9, "x"), "ram_low"),
        ({"draining": None}, (None, None), "draining"),
    ],
)
def test_what_a_node_cannot_be_declared_with(
    changes: dict[str, object], marks: tuple[object, object], field: str
) -> None:
    assert list(node_problems(changes, label="atlas", total=64 * GIB, marks=marks)) == [field]


def test_a_node_may_go_back_to_all_there_is_and_to_the_knobs_marks() -> None:
    changes = {"ram_declared": None, "ram_high": None, "ram_low": None, "draining": True}

    assert node_problems(changes, label="atlas", total=64 * GIB, marks=(None, None)) == {}


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("declared", 0, {"capacity": 0}),
        ("declared", True, {"capacity": True}),
        ("exclusive_only", 1, {"exclusive_only": 1}),
    ],
)
def test_what_is_refused_is_refused_in_the_words_of_the_rules(field: str, value: Any, rule: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        Device(**{"kind": Kind.GPU, "backends": (Backend.CUDA,), "id": 0, "capacity": 1, **rule})
    found = device_problems({field: value}, label="gpu0", total=None, taken=frozenset())
    assert found == {field: str(refused.value)}
