"""What a run needs of each kind of memory, each with the rung that it stands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibration.domain.resources import gib
from placement.domain.world.requests import Gpu
from placement.models import Workload
from placement.selectors import wording
from placement.selectors.wording import listing, mapping, whole

DEVICE = "device memory"
WORDS = (("vram", DEVICE), ("ram", "RAM"))


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


def of_next(estimate: Any, row: Workload | None) -> tuple[Need, ...]:
    """Return the needs of a workload's next run: what its definition reserves exactly, whatever was measured."""
    found, said = by_kind(estimate), (row.placement or {}) if row else {}
    each, together = said.get("per_device_memory"), said.get("group_memory")
    first = each if each is not None else together
    if row is None or first is None:
        return found
    words = DEVICE if row.gpu == Gpu.ONE else f"{DEVICE} of {'each' if each is not None else 'all together'}"
    if each is not None and together is not None:
        words += f" and {gib(together)} of all together"
    own = Need(words, gib(first), "reserved", wording.rung_class("declared"))
    return (own, *(one for one in found if one.words != DEVICE))


def _need(words: str, pool: Any) -> Need:
    need, basis = whole(pool.get("need")), str(pool.get("basis") or "cold_start")
    counted = next((mapping(rung) for rung in listing(pool.get("rungs")) if mapping(rung).get("counted")), {})
    if str(counted.get("why") or "").startswith("pinned"):
        basis = "pinned"
    return Need(words, "" if need is None else gib(need), wording.rung(basis), wording.rung_class(basis))
