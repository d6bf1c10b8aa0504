"""What a run needs of each kind of memory, each with the rung that it stands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibration.domain.resources import gib
from placement.selectors import wording
from placement.selectors.wording import listing, mapping, whole

WORDS = (("vram", "device memory"), ("ram", "RAM"))


@dataclass(frozen=True, slots=True)
class Need:
    """One kind of memory: "6.3 GiB", "" where nothing is known; a number that an operator set says so."""

    words: str
    amount: str
    rung: str
    chip: str


def by_kind(estimate: Any) -> tuple[Need, ...]:
    """Return the needs of a stored estimate, device memory first."""
    pools = mapping(mapping(estimate).get("pools"))
    return tuple(_need(words, mapping(pools[kind])) for kind, words in WORDS if kind in pools)


def _need(words: str, pool: Any) -> Need:
    need, basis = whole(pool.get("need")), str(pool.get("basis") or "cold_start")
    counted = next((mapping(rung) for rung in listing(pool.get("rungs")) if mapping(rung).get("counted")), {})
    if str(counted.get("why") or "").startswith("pinned"):
        basis = "pinned"
    return Need(words, "" if need is None else gib(need), wording.rung(basis), wording.rung_class(basis))
