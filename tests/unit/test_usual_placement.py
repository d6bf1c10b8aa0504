"""A workload says of devices what a submission can, in its words, and what of it stands beside one."""

from __future__ import annotations

from typing import Any

import pytest

from placement.domain.errors import Refused
from placement.domain.submitting.submission import Submission, problems
from placement.domain.submitting.usual_placement import beside, told
from placement.domain.submitting.workloads import parse

GIB = 1 << 30
LEAST = 'name = "w"\ncommand = "true"\n'
GROUP = {"gpu": "group", "exclusive": "no", "min_devices": 2, "max_devices": 4, "memory": "exact"}
EACH = {**GROUP, "per_device_memory": 4 * GIB, "device_kind": "gpu", "node": "a"}


def test_what_is_as_usual_is_not_kept() -> None:
    said = 'gpu = "group"\nmin_devices = 2\neven = true\nmemory = "exact"\ngroup_memory = "6 GiB"\nnode = ""'
    found = parse(LEAST + said)
    assert found.gpu == "group"
    kept = {"min_devices": 2, "max_devices": 2, "memory": "exact", "group_memory": 6 * GIB}
    assert found.placement == kept


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("min_devices = 2", {"min_devices": 2}),
        ('gpu = "group"\nmin_devices = 3\nmax_devices = 2', {"gpu": "group", "min_devices": 3, "max_devices": 2}),
        ('gpu = "group"\nmin_devices = 65', {"gpu": "group", "min_devices": 65}),
        ('gpu = "group"\nmin_devices = "2"', {"gpu": "group", "min_devices": "2"}),
        ('gpu = "one"\nmemory = "exact"', {"gpu": "one", "memory": "exact"}),
        ('gpu = "one"\nbackend = "fpga"', {"gpu": "one", "backend": "fpga"}),
        ('gpu = "group"\neven = false', {"gpu": "group", "even": False}),
        ('gpu = "one"\nnode = 3', {"gpu": "one", "node": 3}),
        ('device = "GPU-1"', {"device": "GPU-1"}),
    ],
)
def test_what_is_wrong_is_told_as_a_submission_tells_it(text: str, said: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        parse(LEAST + text)
    for name, sentence in problems(Submission("w", command="true", **said)).items():
        assert refused.value.fields[name] == sentence


def test_an_amount_that_cannot_be_read_is_told_beside_its_field() -> None:
    with pytest.raises(Refused) as refused:
        parse(LEAST + 'gpu = "one"\nmemory = "exact"\nper_device_memory = "much"')
    assert set(refused.value.fields) == {"per_device_memory"}


@pytest.mark.parametrize(
    ("said", "gone"),
    [
        ({}, set()),
        ({"gpu": "group"}, set()),
        ({"gpu": "one"}, {"min_devices", "max_devices", "memory", "per_device_memory"}),
        ({"gpu": "none"}, set(EACH) - {"gpu", "exclusive", "node"}),
        ({"memory": "auto"}, {"memory", "per_device_memory"}),
        ({"group_memory": GIB}, {"per_device_memory"}),
        ({"min_devices": 3}, {"max_devices"}),
        ({"node": "b"}, {"node"}),
    ],
)
def test_what_no_longer_fits_what_a_submission_says_goes(said: dict[str, Any], gone: set[str]) -> None:
    left = beside(EACH, said)
    assert left == {name: value for name, value in EACH.items() if name not in gone}
    asked = {**left, **said}
    asked.setdefault("max_devices", asked.get("min_devices", 1))
    assert not problems(Submission("w", command="true", **{**asked, "min_devices": asked.get("min_devices", 1)}))


def test_fewer_at_most_than_the_workload_takes_at_least_are_taken() -> None:
    assert beside(EACH, {"max_devices": 1})["min_devices"] == 1
    assert beside({"gpu": "one", "exclusive": "device"}, {"gpu": "none"}) == {"gpu": "one"}


def test_with_another_node_the_device_stays_and_with_another_device_no_node() -> None:
    usual = {"gpu": "one", "node": "a", "device": "gpu1"}
    assert beside(usual, {"node": "b"}) == {"gpu": "one", "device": "gpu1"}
    assert beside(usual, {"device": "gpu2"}) == {"gpu": "one"}


def test_it_is_told_in_words() -> None:
    assert told("none", {}) == "no device"
    assert told("one", {"per_device_memory": 4 * GIB, "device": "GPU-1"}) == (
        "one device, 4.0 GiB reserved of it, device GPU-1"
    )
    assert told("group", EACH) == (
        "a group of 2 to 4 devices, as few as fit, 4.0 GiB reserved of each, only GPU, node a"
    )
    asked = {"min_devices": 2, "max_devices": 2, "group_memory": 6 * GIB, "even": False}
    assert told("group", asked) == "a group of 2 devices, 6.0 GiB reserved of all together, divided by their room"


def test_a_workload_s_one_device_goes_where_more_are_asked_for() -> None:
    usual = {"gpu": "group", "exclusive": "no", "device": "GPU-1", "device_kind": "gpu"}
    assert beside(usual, {"max_devices": 4}).keys() == {"gpu", "exclusive", "device_kind"}
    assert beside(usual, {"max_devices": 1}) == usual
