"""A workload's text is taken whole or refused with a sentence per wrong field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from placement.domain.errors import Refused
from placement.domain.submitting.workloads import Definition, parse

GIB = 1 << 30
LEAST = 'name = "w"\ncommand = "true"\n'


def test_the_example_of_the_documentation_is_taken() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "workloads.md").read_text()
    example = re.search(r"```toml\n(.*?)```", page, re.S)
    assert example is not None
    found = parse(example[1])
    assert (found.name, found.gpu, found.workers, found.hint_vram) == ("train-vit", "one", 4, 12 * GIB)
    assert [(p["name"], p["matters"]) for p in found.parameters] == [("lr", True), ("seed", False)]
    assert found.environment == {"WANDB_MODE": "offline"}
    assert found.retry_policy == {"times": 2, "on": ["failed", "lost"], "wait_s": 60.0, "longest_s": 3600.0}


def test_the_least_is_a_name_and_a_command() -> None:
    assert parse(LEAST) == Definition("w", "true")


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('name = "w"', "command"),
        (LEAST + 'colour = "red"', "colour"),
        (LEAST + "summary = 3", "summary"),
        (LEAST + 'gpu = "two"', "gpu"),
        (LEAST + 'exclusive = "device"', "gpu"),
        (LEAST + 'hint_vram = "1 GiB"', "gpu"),
        (LEAST + 'hint_ram = "much"', "hint_ram"),
        (LEAST + "hint_ram = -1", "hint_ram"),
        (LEAST + "workers = 0", "workers"),
        (LEAST + "workers = true", "workers"),
        (LEAST + "time_limit_s = nan", "time_limit_s"),
        (LEAST + 'shape_varies = "no"', "shape_varies"),
        (LEAST + 'watch_policy = "kill"', "watch_policy"),
        (LEAST + "files = [1]", "files"),
        (LEAST + "retry = 3", "retry"),
        (LEAST + "[retry]\nwait_s = 3", "retry"),
        (LEAST + "[retry]\ntimes = true", "retry"),
        (LEAST + '[retry]\ntimes = 2\non = ["cancelled"]', "retry"),
        (LEAST + "[retry]\ntimes = 2\nwait_s = -1", "retry"),
        (LEAST + "[retry]\ntimes = 2\nhow = 1", "retry"),
        (LEAST + "[environment]\nA = 1", "environment"),
        (LEAST + "[parameters]\nlr = 1", "parameters"),
        (LEAST + '[parameters.lr]\nunit = "s"', "parameters"),
        ('name = "w"\ncommand = "run {lr}"', "command"),
    ],
)
def test_what_is_wrong_is_named_under_its_field(text: str, field: str) -> None:
    with pytest.raises(Refused) as refused:
        parse(text)
    assert field in refused.value.fields


def test_what_is_no_toml_says_where() -> None:
    with pytest.raises(Refused, match=r"This is not TOML: .*line 2"):
        parse("name = 1\nname = = 2\n")


def test_what_is_nested_without_end_is_no_toml_either() -> None:
    with pytest.raises(Refused, match="nested too deep"):
        parse("a = " + "[" * 100_000)
