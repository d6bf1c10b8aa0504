from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.domain.submitting.submission import LONGEST_ARGUMENT, Submission, looks_like_gpu, problems
from tests.examples import examples


def asked(**fields: Any) -> Submission:
    return Submission(**({"name": "train", "command": "python train.py"} | fields))


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="a name and a command"),
        pytest.param({"name": ""}, id="a name is made from the command where none is typed"),
        pytest.param({"command": "", "argv": ("python", "train.py", "")}, id="an argument list, empty arguments too"),
        pytest.param({"command": "", "workload": "train", "params": {"lr": "1e-3"}}, id="a workload"),
        pytest.param({"command": "cd x\npython train.py\n"}, id="a command of several lines"),
        pytest.param({"command": "x" * LONGEST_ARGUMENT}, id="the longest command"),
        pytest.param({"gpu": "one", "device": "GPU-1", "exclusive": "device", "declared_vram": 1}, id="a device alone"),
        pytest.param({"time_limit_s": 0.5, "declared_ram": 2**60}, id="limits at their bounds"),
        pytest.param({"environment": {"LR": "0.1\n"}}, id="a variable of two lines"),
    ],
)
def test_it_takes(fields: dict[str, Any]) -> None:
    assert problems(asked(**fields)) == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "two\nlines"),
        ("name", "escape \x1b[31m"),
        ("name", "x" * 201),
        ("name", ["a"]),
        ("name", "\ud800"),
        ("note", "x" * 501),
        ("command", "echo \0"),
        ("command", "ü" * (LONGEST_ARGUMENT // 2 + 1)),
        ("command", 7),
        ("setup", "a\0b"),
        ("cwd", "relative/path"),
        ("cwd", "/a\nb"),
        ("argv", ["python"]),
        ("argv", ()),
        ("argv", ("",)),
        ("argv", ("python", 3)),
        ("argv", ("python", "x" * (LONGEST_ARGUMENT + 1))),
        ("argv", ("python", "a\0b")),
        ("params", ["a"]),
        ("params", {"a": 1}),
        ("environment", {"A-B": "1"}),
        ("environment", {"CUDA_VISIBLE_DEVICES": "0"}),
        ("environment", {"TIDEGATE_JOB_ID": "1"}),
        ("environment", {"A": "x" * LONGEST_ARGUMENT}),
        ("workers", 0),
        ("workers", True),
        ("workers", math.nan),
        ("workers", 10**9),
        ("gpu", "two"),
        ("gpu", ["one"]),
        ("exclusive", "device"),
        ("device", "GPU-1"),
        ("declared_vram", 2**30),
        ("declared_ram", 0),
        ("declared_ram", -1),
        ("declared_ram", 1e30),
        ("declared_ram", math.inf),
        ("declared_ram", 10**30),
        ("declared_ram", ""),
        ("declared_ram", [1]),
        ("time_limit_s", math.nan),
        ("time_limit_s", math.inf),
        ("time_limit_s", 0),
        ("time_limit_s", -5),
        ("time_limit_s", 10**400),
        ("time_limit_s", "60"),
        ("priority", 1.5),
        ("priority", 101),
        ("demo", "yes"),
    ],
)
def test_it_refuses_with_a_sentence_under_the_field(field: str, value: Any) -> None:
    found = problems(asked(**{field: value} | ({"command": ""} if field == "argv" else {})))

    assert list(found) == [field]
    assert found[field].endswith(".")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"command": "  "}, "command"),
        ({"argv": ("ls",)}, "command"),
        ({"command": "", "argv": ("ls",), "workload": "train"}, "argv"),
    ],
)
def test_exactly_one_thing_is_run(fields: dict[str, Any], field: str) -> None:
    assert list(problems(asked(**fields))) == [field]


anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(),
    st.lists(st.text()), st.dictionaries(st.text(), st.text() | st.integers()), st.tuples(st.text()),
)  # fmt: skip


@settings(max_examples=examples(150), deadline=None)
@given(
    st.dictionaries(st.sampled_from([f for f in Submission.__dataclass_fields__ if f != "name"]), anything), anything
)
def test_no_value_of_any_type_raises_and_every_sentence_is_under_a_field(fields: dict[str, Any], name: Any) -> None:
    found = problems(Submission(name=name, **fields))

    assert set(found) <= set(Submission.__dataclass_fields__)
    assert all(found.values())


@pytest.mark.parametrize(
    ("command", "gpu"),
    [
        ("python train.py", True),
        ("/usr/bin/python3.11 -m x", True),
        ("CUDA_LAUNCH_BLOCKING=1 ./a.out", True),
        ("torchrun --nproc 2 t.py", True),
        ("vllm serve x", True),
        ("ollama run llama", True),
        ("bash run_pytorch.sh", True),
        ("make -j4", False),
        ("rsync -a pythonic/ b", False),
        ("sleep 300", False),
    ],
)
def test_what_looks_like_it_wants_a_device(command: str, gpu: bool) -> None:
    assert looks_like_gpu(command) is gpu


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("train \u202etxt.exe", False),
        ("\u200b", False),
        ("\u200d", False),
        ("a\u2066b", False),
        ("family \U0001f468\u200d\U0001f469\u200d\U0001f467", True),
        ("می\u200cخواهم", True),
    ],
)
def test_a_name_cannot_hide_or_turn_around(name: str, taken: bool) -> None:
    assert ("name" not in problems(asked(name=name))) is taken


@pytest.mark.parametrize(
    "field, fields",
    [
        ("max_devices", {"gpu": "one", "max_devices": 2}),
        ("max_devices", {"gpu": "group", "min_devices": 3, "max_devices": 2}),
        ("max_devices", {"gpu": "group", "max_devices": 65}),
        ("min_devices", {"gpu": "group", "min_devices": True}),
        ("prefer_max", {"gpu": "one", "prefer_max": True}),
        ("prefer_max", {"gpu": "group", "prefer_max": 1}),
        ("device", {"gpu": "group", "max_devices": 2, "device": "GPU-0"}),
        ("memory", {"gpu": "one", "memory": "exact"}),
        ("memory", {"gpu": "none", "memory": "exact", "per_device_memory": 1}),
        ("memory", {"gpu": "one", "memory": ["exact"]}),
        ("group_memory", {"gpu": "one", "memory": "exact", "group_memory": 1}),
        ("per_device_memory", {"gpu": "one", "per_device_memory": 1}),
        ("per_device_memory", {"gpu": "one", "memory": "exact", "per_device_memory": 0}),
        ("declared_vram", {"gpu": "one", "memory": "exact", "per_device_memory": 1, "declared_vram": 1}),
        ("even", {"gpu": "group", "memory": "exact", "per_device_memory": 1, "even": False}),
        ("even", {"gpu": "group", "even": "no"}),
        ("device_kind", {"gpu": "one", "device_kind": "cpu"}),
        ("backend", {"gpu": "one", "backend": "metal"}),
        ("backend", {"gpu": "none", "backend": "rocm"}),
        ("backend", {"gpu": "one", "backend": 3}),
    ],
)
def test_what_is_said_of_a_group_or_of_exact_memory_is_told_where_it_is_wrong(
    field: str, fields: dict[str, Any]
) -> None:
    found = problems(Submission(name="a", command="true", **fields))
    assert list(found) == [field]
    assert found[field].endswith(".")


def test_a_group_and_exact_memory_can_be_asked_for() -> None:
    group = {"gpu": "group", "min_devices": 2, "max_devices": 4, "prefer_max": True, "memory": "exact"}
    assert not problems(Submission(name="a", command="true", **group, group_memory=8, per_device_memory=1))
    assert not problems(Submission(name="a", command="true", **group, group_memory=8, even=False, device_kind="tpu"))
    one = Submission(name="a", command="true", gpu="one", memory="exact", per_device_memory=1, backend="ROCM")
    assert not problems(one)
