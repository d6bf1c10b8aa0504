"""Every test that the table of known harms names is there, and no harm has lost its line."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TABLE = REPOSITORY / "tests" / "BUGS.md"
IDS = (
    "01 02 03 05 06 07 08 09 11 12 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33"
    " 34 35 36 38 39 44 46 49 51 52 57 58 59 60"
)
ROWS = re.findall(r"^\| (\d\d) \| ([^|]+) \| ([^|]+) \|$", TABLE.read_text(), re.MULTILINE)


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of a file's tests as pytest writes them, without running anything."""
    found: set[str] = set()
    for top in ast.parse((REPOSITORY / path).read_text()).body:
        if isinstance(top, ast.ClassDef):
            found |= {f"{top.name}::{one.name}" for one in top.body if isinstance(one, ast.FunctionDef)}
        elif isinstance(top, ast.FunctionDef):
            found.add(top.name)
    return frozenset(name for name in found if name.rpartition("::")[2].startswith("test_"))


@pytest.mark.parametrize("node", sorted({node for _, _, node in ROWS}))
def test_a_named_test_exists(node: str) -> None:
    path, _, name = node.partition("::")
    assert (REPOSITORY / path).is_file(), f"{path} is not there"
    assert name in names_in(path), f"{path} has no {name}"


def test_every_harm_has_a_line_and_every_line_was_read() -> None:
    lines = [line for line in TABLE.read_text().splitlines() if line.startswith("| ") and not line.startswith("| id")]
    assert len(ROWS) == len(lines)
    assert {number for number, _, _ in ROWS} == set(IDS.split())
    assert len(set(ROWS)) == len(ROWS), "a line stands there twice"
