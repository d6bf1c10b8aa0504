"""A stored estimate as rows to show: the trust ladder of each pool, rung by rung."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from calibration.domain.resources import gib
from placement.selectors import wording
from placement.selectors.wording import listing, mapping, whole


@dataclass(frozen=True, slots=True)
class RungRow:
    """One rung of one pool's ladder."""

    basis: str
    word: str
    chip: str
    why: str
    figure: str
    exact: str
    margin: str
    counted: bool


@dataclass(frozen=True, slots=True)
class Ladder:
    """All rungs of one pool kind, and what the need is."""

    kind: str
    need: str
    basis: str
    rungs: tuple[RungRow, ...]
    notes: tuple[str, ...]


def ladders(estimate: Any) -> tuple[Ladder, ...]:
    """Return the ladder of each pool kind, device first."""
    pools = mapping(mapping(estimate).get("pools"))
    order = sorted(pools, key=lambda kind: kind != "vram")
    return tuple(_ladder(kind, mapping(pools[kind])) for kind in order)


def needs(estimate: Any, devices: int = 1) -> str:
    """Return "8.2 GiB on a device, 12.4 GiB RAM"; "" where nothing is known."""
    where = "on a device" if devices < 2 else f"on each of {devices} devices"
    pools = mapping(mapping(estimate).get("pools"))
    parts = []
    for kind, words in (("vram", where), ("ram", "RAM")):
        need = whole(mapping(pools.get(kind)).get("need"))
        if need is not None:
            parts.append(f"{gib(need)} {words}")
    return ", ".join(parts)


def _ladder(kind: str, pool: Mapping[str, Any]) -> Ladder:
    rows = []
    for raw in listing(pool.get("rungs")):
        rung = mapping(raw)
        basis, amount = str(rung.get("basis") or ""), whole(rung.get("bytes"))
        margin = whole(rung.get("margin"))
        rows.append(
            RungRow(
                basis=basis,
                word=wording.rung(basis),
                chip=wording.rung_class(basis),
                why=str(rung.get("why") or "") or "–",  # rows of before did not say why a rung has no number
                figure=gib(amount) if amount is not None else "–",
                exact=f"{amount:,} bytes" if amount is not None else "no number",
                margin=f"margin {gib(margin)}" if margin else "",
                counted=bool(rung.get("counted")),
            )
        )
    need = whole(pool.get("need"))
    return Ladder(
        kind="Device memory" if kind == "vram" else "RAM",
        need=gib(need) if need is not None else "nothing known",
        basis=str(pool.get("basis") or ""),
        rungs=tuple(rows),
        notes=tuple(str(n) for n in listing(pool.get("notes"))),
    )
