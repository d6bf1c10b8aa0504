from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from placement.runner.spec import Account, SpecError, parse_spec, read_spec

DATA = Path(__file__).parents[1] / "data" / "runner"


def load(name: str) -> dict[str, Any]:
    fields = json.loads((DATA / name).read_text())
    assert isinstance(fields, dict)
    return fields


def test_the_first_version_loads_for_ever() -> None:
    spec = parse_spec(load("v1-spec.json"))
    assert spec.command == "python train.py --lr 1e-3"
    assert spec.argv is None
    assert spec.account == Account("ada", 1001, 1001, (1001, 44), "/home/ada")
    assert (spec.umask, spec.time_limit_s, spec.sweep) == (18, 3600.5, "keep")


def test_the_least_spec_gets_the_defaults() -> None:
    spec = parse_spec(load("v1-spec-least.json"))
    assert spec.argv == ("/bin/true",)
    assert (spec.grace_s, spec.sweep, spec.sweep_grace_s, spec.oom_score_adj) == (
        10.0,
        "after_grace",
        5.0,
        500,
    )
    assert (spec.umask, spec.log_limit_bytes, spec.time_limit_s, spec.account) == (
        0o022,
        64 << 20,
        None,
        None,
    )


def test_a_later_version_with_unknown_fields_loads() -> None:
    spec = parse_spec(load("v9-spec.json"))
    assert (spec.job_id, spec.argv) == (8, ("./run", "two words"))


@pytest.mark.parametrize(
    "change, told",
    [
        ({"command": None}, "neither a command nor an argument list"),
        ({"command": "  "}, "neither a command nor"),
        ({"argv": ["a"]}, "both a command and an argument list"),
        ({"command": None, "argv": []}, "argument list is not"),
        ({"command": None, "argv": ["", "a"]}, "names no program"),
        ({"command": None, "argv": ["a", 1]}, "argument list is not"),
        ({"command": "a\0b"}, "the command contains a NUL"),
        ({"command": None, "argv": ["a", "b\0"]}, "an argument contains a NUL"),
        ({"cwd": "/a\0"}, "the working directory contains a NUL"),
        ({"setup": "\0"}, "the set-up line contains a NUL"),
        ({"env": {"A": "b\0"}}, "the environment contains a NUL"),
        ({"env": {"A=B": "c"}}, "no name for an environment variable"),
        ({"env": {"": "c"}}, "no name for an environment variable"),
        ({"env": {"A": 1}}, "environment is not a table of texts"),
        ({"cwd": None}, "cwd is not a text"),
        ({"sweep": "later"}, "none of after_grace, keep"),
        ({"grace_s": -1}, "grace_s is not a number of seconds"),
        ({"grace_s": float("nan")}, "grace_s is not a number of seconds"),
        ({"time_limit_s": "60"}, "time_limit_s is not a number of seconds"),
        ({"umask": True}, "umask is not a whole number"),
        ({"account": {"name": "ada", "gid": 5}}, "no numeric uid and gid"),
        ({"account": {"name": "ada", "uid": -1, "gid": 5}}, "no numeric uid and gid"),
        ({"account": {"name": "ada", "uid": 2**32 - 1, "gid": 5}}, "no numeric uid and gid"),
        ({"account": {"name": "ada", "uid": 5, "gid": 5, "groups": [True]}}, "not a list of group ids"),
        ({"account": "ada"}, "account is not a table"),
    ],
)  # fmt: skip
def test_a_spec_that_cannot_run_says_why(change: dict[str, Any], told: str) -> None:
    with pytest.raises(SpecError, match=told) as caught:
        parse_spec({**load("v1-spec.json"), **change})
    assert str(caught.value).startswith("could not start: ")


@pytest.mark.parametrize(
    "content, told",
    [(None, "is missing"), ("{", "not a readable"), ("[1]", "not a readable"), ("", "not a readable")],
)
def test_a_file_that_is_no_spec_says_so(content: str | None, told: str, tmp_path: Path) -> None:
    (tmp_path / "control").mkdir()
    if content is not None:
        (tmp_path / "control" / "spec.json").write_text(content)
    with pytest.raises(SpecError, match=told):
        read_spec(str(tmp_path))
