"""Documentation that lists something lists all of it, as the code has it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from calibration.domain.ladder import Basis
from placement.domain.admission.decision import Code

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_of_knobs_is_what_the_tables_say() -> None:
    render = runpy.run_path(str(DOCS / "render.py"))
    assert (DOCS / "knobs.md").read_text() == render["knobs_page"](), "run `python docs/render.py`"


def test_every_reason_is_explained_in_the_gates_order() -> None:
    table = (DOCS / "reasons.md").read_text().split("## The sums")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == [code.value for code in Code]


@pytest.mark.parametrize("basis", list(Basis), ids=lambda basis: basis.word)
def test_every_rung_is_explained(basis: Basis) -> None:
    assert f"| `{basis.word}` |" in (DOCS / "reasons.md").read_text()


@pytest.mark.parametrize("page", sorted([*DOCS.glob("*.md"), *DOCS.parent.glob("*.md")]), ids=lambda page: page.name)
def test_each_picture_and_link_of_a_page_is_there(page: Path) -> None:
    wanted = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text())
    missing = [link for link in wanted if "://" not in link and not (page.parent / link).exists()]
    assert not missing, f"{page.name} leads to what is not there: {missing}"


@pytest.mark.parametrize("page", sorted([*DOCS.rglob("*.md"), *DOCS.parent.glob("*.*")]), ids=lambda page: page.name)
def test_nothing_is_left_of_a_merge(page: Path) -> None:
    if page.is_file():
        assert not re.findall(rb"^(?:<{7}|>{7}) .*", page.read_bytes(), re.M)
