"""A definition written as TOML reads back as itself, whatever stands in it."""

from __future__ import annotations

import pytest

from placement.domain.submitting.workload_text import amount_text, write
from placement.domain.submitting.workloads import Definition, parse

ODD = Definition(
    name='a "b" \\ c\u007f',
    command="first {x}\nsecond 'it' \"is\"\t{y_2}",
    summary="näme … 🙂",
    setup="source a/b",
    cwd="/tmp/a b",
    gpu="one",
    exclusive="device",
    workers=3,
    time_limit_s=0.1,
    hint_ram=(1 << 30) + 1,
    hint_vram=12 << 30,
    shape_varies=True,
    watch_policy="cap",
    revoked_ends=True,
    image="registry.example:5000/team/train:2",
    engine="podman",
    files=("a.py", "b c.py"),
    parameters=(
        {"name": "x", "default": "1e-3", "matters": True, "help": ""},
        {"name": "y_2", "default": 'a"b', "matters": False, "help": "so\nso"},
    ),
    environment={"A": 'x"\n'},
    retry_policy={"times": 2, "on": ["failed", "lost"], "wait_s": 0.0, "longest_s": 90.5},
)

GROUP = Definition(
    name="g",
    command="true",
    gpu="group",
    placement={
        "min_devices": 2, "max_devices": 4, "prefer_max": True, "memory": "exact", "per_device_memory": (1 << 30) + 1,
        "group_memory": 6 << 30, "even": False, "node": "a", "device_kind": "gpu", "backend": "cuda",
    },
)  # fmt: skip


@pytest.mark.parametrize("definition", [ODD, GROUP, Definition(name="n", command="true")])
def test_it_reads_back_as_it_was(definition: Definition) -> None:
    assert parse(write(definition)) == definition


def test_sealed_variables_are_named_and_no_more() -> None:
    text = write(Definition(name="n", command="true"), ["TOKEN"])
    assert "# TOKEN = …" in text
    assert parse(text).environment == {}


@pytest.mark.parametrize("amount, text", [(12 << 30, "12.0 GiB"), ((1 << 30) + 1, "1073741825 B"), (0, "0 MiB")])
def test_amounts_are_written_so_that_they_read_back(amount: int, text: str) -> None:
    assert amount_text(amount) == text
