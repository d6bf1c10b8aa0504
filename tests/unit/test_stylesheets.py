"""Stylesheets and templates agree: no rule for nothing, no class without a rule, and each page links what it wears."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[2]
TEMPLATES, SHEETS = HERE / "templates", HERE / "static" / "css"
SOURCES = [*(HERE / "placement").rglob("*.py"), *(HERE / "static" / "js").glob("*.js")]
FAMILIES = {
    "rung-": "wording.rung_class",
    "tone-": "figures.js, the tone of a trace",
    "o": "tanks.tone, eight by turns",
    "f": "terminal.py, letters in one of sixteen colours",
    "k": "terminal.py, their ground",
}
"""Beginnings of classes that are put together, and where; what follows a single letter is a number."""
PLOTLY = SHEETS / "plotly.css"  # classes of the library's own
UNSTYLED = {
    "waiting", "running", "all", "state", "checks", "cell", "again", "block", "rest", "info", "edge", "api-list",
    "api-noun", "no-inline-styles",
}  # fmt: skip
"""Classes by which scripts, tests and libraries find things; they look like nothing."""
WITHIN = {"what", "when"}  # look like something within some lists alone
PAGES = sorted(path for path in TEMPLATES.rglob("*.html") if '{% extends "base.html" %}' in path.read_text())


def rules(path: Path) -> list[tuple[str, str]]:
    """Return the selectors of a stylesheet with what each declares, those inside of @media, too."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
    return [
        (one.strip(), body)
        for one, body in re.findall(r"([^{}]+)\{(?=([^{}]*))", text)
        if not one.strip().startswith("@")
    ]


def ruled(path: Path) -> set[str]:
    """Return the classes that a stylesheet has rules for."""
    selectors = [re.sub(r'"[^"]*"', "", selector) for selector, _ in rules(path)]
    return {name for selector in selectors for name in re.findall(r"\.([a-zA-Z][\w-]*)", selector)}


def worn(text: str) -> set[str]:
    """Return the classes that a template gives, those within its tags left out."""
    given = " ".join(re.findall(r'class="((?:\{%.*?%\}|\{\{.*?\}\}|[^"])*)"', text))
    return set(re.findall(r"(?<![\w-])[a-zA-Z][\w-]*(?![\w-])", re.sub(r"\S*\{\{.*?\}\}\S*|\{%.*?%\}", " ", given)))


def whole(name: str, seen: set[str]) -> str:
    """Return a template with all that it includes."""
    if name in seen:
        return ""
    seen.add(name)
    text = (TEMPLATES / name).read_text()
    return text + "".join(whole(part, seen) for part in re.findall(r'\{% include "([^"]+)"', text))


def linked(text: str) -> set[str]:
    return set(re.findall(r"'css/([\w-]+)\.css'", text))


def test_each_rule_is_for_something() -> None:
    given = "\n".join(path.read_text() for path in [*TEMPLATES.rglob("*.html"), *SOURCES])
    words = set(re.findall(r"[a-zA-Z][\w-]*", given))
    unused = {
        f"{path.name}: .{name}"
        for path in SHEETS.glob("*.css")
        if path != PLOTLY
        for name in ruled(path) - words
        if not any(name.startswith(f) and (len(f) > 1 or name[1:].isdecimal()) for f in FAMILIES)
    }
    assert unused - {"figures.css: .js-plotly-plot"} == set()


def test_each_class_has_a_rule() -> None:
    known = set().union(*map(ruled, SHEETS.glob("*.css")))
    missing = {
        f"{path.name}: .{name}"
        for path in TEMPLATES.rglob("*.html")
        for name in worn(path.read_text()) - known - UNSTYLED
    }
    assert missing == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_links_what_it_wears(page: Path) -> None:
    text = whole(str(page.relative_to(TEMPLATES)), set())
    there = linked(text) | linked((TEMPLATES / "base.html").read_text())
    of: dict[str, set[str]] = {}
    for sheet in SHEETS.glob("*.css"):
        for name in ruled(sheet):
            of.setdefault(name, set()).add(sheet.stem)
    lost = {
        name: sheets
        for name in worn(text) - UNSTYLED - WITHIN
        if (sheets := of.get(name, {"none"})) and not sheets & there
    }
    assert lost == {}


def test_every_stylesheet_is_linked() -> None:
    everywhere = set().union(*(linked(path.read_text()) for path in TEMPLATES.rglob("*.html")))
    assert everywhere == {sheet.stem for sheet in SHEETS.glob("*.css")}


def test_no_two_stylesheets_rule_over_one_bare_class() -> None:
    """A class alone, with no other to say whose it is, has one meaning: pages load several of these files."""
    bare = Counter(
        name
        for path in SHEETS.glob("*.css")
        if path.stem != "print"
        for name in {
            one for selector, _ in rules(path) for one in re.findall(r"(?:^|,\s*)\.([\w-]+)(?=\s*(?:,|$))", selector)
        }
    )
    assert [name for name, times in bare.items() if times > 1] == []


def test_colours_and_sizes_of_type_stand_with_the_tokens_alone() -> None:
    raw = [
        f"{path.name}: {selector} {{ {found} }}"
        for path in SHEETS.glob("*.css")
        if path.stem != "tokens"
        for selector, body in rules(path)
        for found in re.findall(r"#[0-9a-fA-F]{3,8}\b|font(?:-size)?:[^;]*?\b[\d.]+(?:px|rem)", body)
        if not re.fullmatch(r"\.[fk]\d+", selector)  # the palette of terminals is theirs
    ]
    assert raw == []
