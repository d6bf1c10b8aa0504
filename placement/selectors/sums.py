"""The figures of a check as a bar and as the sum in words that made its room. Widths are percents of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibration.domain.resources import gib
from placement.selectors.wording import whole

TERMS = ("used", "growth", "kept")  # what a bar of measured room is made of, in this order
WHOLE = (("total", "used"), ("declared", "leased"), ("limit", "held"))
"""What a bar is all of, and what is taken of it: measured, booked, a quota."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One stretch of a check's bar, in percent."""

    kind: str
    x: float
    width: float
    title: str


def bar(figures: Mapping[str, Any]) -> tuple[tuple[Piece, ...], float | None]:
    """Return what is taken of the whole, growth and kept as a bar, and where the need would end."""
    need = whole(figures.get("need", figures.get("wanted")))
    size, known = _taken(figures)
    if not size or need is None or known.get("used") is None:
        return (), None
    pieces: list[Piece] = []
    at = 0.0
    for term in TERMS:
        amount = known.get(term)
        if not amount or amount < 0:
            continue
        width = max(0.0, min(round(amount / size * 200) / 2, 100.0 - at))
        pieces.append(Piece(term, at, width, f"{_known_as(figures, term)}: {gib(amount)}"))
        at += width
    return tuple(pieces), min(99.5, at + round(need / size * 200) / 2)


def _known_as(figures: Mapping[str, Any], term: str) -> str:
    """Return what a part of a bar is called in the sum beside it."""
    taken = next((part for all_of, part in WHOLE if whole(figures.get(all_of)) is not None), term)
    return taken if term == "used" else term


def _taken(figures: Mapping[str, Any]) -> tuple[int | None, dict[str, int | None]]:
    """Return the whole of which a check speaks, and what is taken of it; of a first run what is left is known."""
    left, declared, free = (whole(figures.get(name)) for name in ("left", "declared", "free"))
    if declared is not None and left is not None:
        return declared, {"used": declared - left}
    for all_of, part in WHOLE:
        amount, used = whole(figures.get(all_of)), whole(figures.get(part))
        if amount is None:
            continue
        if used is None and all_of == "total" and free is not None:
            used = amount - free
        return amount, {"used": used, "growth": whole(figures.get("growth")), "kept": whole(figures.get("kept"))}
    return None, {}


def total(figures: Mapping[str, Any]) -> str:
    """Return "24.0 GiB total − 14.9 GiB used − … = 6.1 GiB room" where the figures are such a sum."""
    room = whole(figures.get("room"))
    first = next((name for name in ("total", "declared") if whole(figures.get(name)) is not None), "")
    if room is None or not first:
        return ""
    names = ("used", "withheld", "growth", "kept") if first == "total" else ("leased",)
    amounts = [(name, whole(figures.get(name))) for name in names]
    if any(amount is None for _, amount in amounts):
        return ""
    less = "".join(f" − {gib(amount)} {name}" for name, amount in amounts if amount)
    return f"{gib(whole(figures[first]))} {first}{less} = {'−' if room < 0 else ''}{gib(abs(room))} room"
