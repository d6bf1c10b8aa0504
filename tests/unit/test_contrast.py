"""Every pair of tokens that stands one on the other can be told apart, in both themes (WCAG 2.2, 1.4.3, 1.4.11)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

STATIC = Path(__file__).resolve().parents[2] / "static" / "css"
GROUNDS = ("paper", "card", "fill")
VERDICTS = ("run", "ok", "wait", "stop", "quiet")
OWNERS = ("o1", "o2", "o3", "o4", "o5", "o6", "o7", "o8", "res", "ext", "unk", "drv", "self")
OUTLINED = ("hint", "declared", "cold-start")
LIGHTER = ("scaled", "edited", "similar")

TEXT = [
    *[(ink, ground) for ink in ("ink", "soft") for ground in (*GROUNDS, *[f"{v}-bg" for v in VERDICTS])],
    *[(verdict, ground) for verdict in VERDICTS for ground in (*GROUNDS, f"{verdict}-bg")],
    ("card", "ink"),  # the first button, what is chosen
    *[("card", f"b-{basis}") for basis in ("measured", "pinned", "fitted")],
    *[("ink", f"b-{basis}") for basis in LIGHTER],
    *[(f"b-{basis}", ground) for basis in OUTLINED for ground in ("card", "run-bg")],
    ("term-ink", "term"),
    ("term-ink", "term-hit"),
    ("term", "term-mark"),
    ("card", "stop"),  # how many notices are unread
]
"""Text and what it stands on: 4.5 to 1."""
GRAPHICS = [
    *[(owner, ground) for owner in OWNERS for ground in ("card", "fill")],
    *[(mark, ground) for mark in ("edge", "faint", "kept") for ground in GROUNDS],
    *[(verdict, ground) for verdict in VERDICTS for ground in GROUNDS],
]
"""Bars, swatches, edges of fields, marks: 3 to 1."""


def tokens() -> dict[str, tuple[str, str]]:
    """Return each colour by name: by day, by night."""
    text = (STATIC / "tokens.css").read_text()
    found = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", text)
    return {name: (day, night) for name, day, night in found}


def luminance(colour: str) -> float:
    """Return the relative luminance of "#rrggbb" (WCAG 2.2, "relative luminance")."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Return the ratio of two colours: 1 for the same, 21 for black on white."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def too_close(pairs: list[tuple[str, str]], least: float) -> list[str]:
    """Return one sentence for each pair, and theme, below the least ratio."""
    known = tokens()
    return [
        f"--{upper} on --{ground} by {theme}: {ratio:.2f}, {least:g} is the least"
        for upper, ground in pairs
        for theme, a, b in zip(("day", "night"), known[upper], known[ground], strict=True)
        if (ratio := contrast(a, b)) < least
    ]


def test_the_measure_is_the_standards():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_text_can_be_read():
    assert too_close(TEXT, 4.5) == []


def test_bars_marks_and_edges_can_be_seen():
    assert too_close(GRAPHICS, 3.0) == []


def test_a_pair_that_cannot_be_told_apart_is_found():
    assert too_close([("line", "card")], 3.0)


def test_each_verdict_owner_and_basis_has_a_token_that_is_held_to_a_contrast():
    held = {name for pair in TEXT + GRAPHICS for name in pair}
    assert set(tokens()) - held == {"line"}  # decoration alone


def test_no_other_stylesheet_names_a_colour():
    raw = re.compile(r"(?<![\w-])(#[0-9a-fA-F]{3,8}\b|rgba?\(|hsla?\()")
    terminal = {"log.css"}  # the sixteen colours of a terminal are a standard of their own
    found = {
        path.name: sorted(set(raw.findall(path.read_text())))
        for path in STATIC.glob("*.css")
        if path.name not in {"tokens.css", *terminal} and raw.search(path.read_text())
    }
    assert found == {}
