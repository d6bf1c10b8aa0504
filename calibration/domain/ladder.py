"""The trust ladder: what an estimate may stand on, and how much margin each rung keeps."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from .knobs import DEFAULTS, Knobs
from .resources import times


class Basis(enum.IntEnum):
    """A rung, worst first: the whole is as good as its worst part, so ``min`` finds its basis."""

    COLD_START = 0
    DECLARED = 1
    HINT = 2
    SIMILAR = 3
    EDITED = 4
    SCALED = 5
    FITTED = 6
    MEASURED = 7

    @property
    def word(self) -> str:
        """Return the rung's name as it is stored and shown."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung of one pool: its number (None: it has none), its margin, where it came from or why there is none."""

    basis: Basis
    bytes: int | None
    margin: int | None
    why: str
    counted: bool = False


def margin_for(basis: Basis, need: int | None, knobs: Knobs = DEFAULTS) -> int | None:
    """Return the bytes held back for a need on this rung: 0 for a cold start, None for an unknown need."""
    if basis is Basis.COLD_START:
        return 0
    if basis is Basis.MEASURED:
        return knobs.bytes_of("measured_margin_mib")
    if need is None:
        return None
    shares = {
        Basis.FITTED: knobs.fitted_margin,
        Basis.SCALED: knobs.scaled_margin,
        Basis.EDITED: knobs.edited_margin,
        Basis.SIMILAR: knobs.similar_margin,
        Basis.HINT: knobs.hint_margin,
        Basis.DECLARED: knobs.declared_margin,
    }
    return times(need, shares[basis])
