"""Whether a kept run counts in the estimate of the next one, and if not, why: one word for each row."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from .curve import sampled_first
from .knobs import DEFAULTS, Knobs
from .sediment import Row


class Standing(enum.StrEnum):
    """How a row stands, from "counts" to "forgotten"; see ``SAID``."""

    COUNTS = "counts"
    BOUND = "bound"
    EDITED = "edited"
    OLDER = "older"
    GUESS = "guess"
    UNSEEN = "unseen"
    ATYPICAL = "atypical"
    FORGOTTEN = "forgotten"

    @property
    def retired(self) -> bool:
        """Return whether the next run is charged as if this one had not been."""
        return self not in (Standing.COUNTS, Standing.BOUND)


SAID = {
    Standing.COUNTS: "",
    Standing.BOUND: "it did not complete: what it used is a lower bound",
    Standing.EDITED: "the sources changed since",
    Standing.OLDER: "newer runs are enough",
    Standing.GUESS: "too short to be sampled: others were",
    Standing.UNSEEN: "this memory was not seen of it",
    Standing.ATYPICAL: "marked as not typical",
    Standing.FORGOTTEN: "forgotten",
}


@dataclass(frozen=True, slots=True)
class Kept:
    """A row and whether an operator had it forgotten."""

    row: Row
    forgotten: bool = False


def standings(kept: Sequence[Kept], kind: str, fingerprint: str, knobs: Knobs = DEFAULTS) -> tuple[Standing, ...]:
    """Return how each row stands for one kind of memory, where the next run has this fingerprint.

    The rows are of one key, newest first. Where none of this fingerprint counts, rows of the one before are what the
    rung "edited" stands on; they are told as edited all the same.
    """
    counting = [one.row for one in kept if not one.forgotten]
    sampled = {id(row) for row in sampled_first(counting, kind)}
    seen: dict[int, int] = {}
    found = []
    for one in kept:
        standing = _own(one, kind, fingerprint, id(one.row) in sampled)
        if standing is Standing.COUNTS:
            workers = max(1, one.row.key.workers)
            seen[workers] = seen.get(workers, 0) + 1
            if seen[workers] > knobs.window_rows:
                standing = Standing.OLDER
        found.append(standing)
    return tuple(found)


def _own(one: Kept, kind: str, fingerprint: str, sampled: bool) -> Standing:
    row = one.row
    if one.forgotten:
        return Standing.FORGOTTEN
    if row.atypical:
        return Standing.ATYPICAL
    if kind not in row.peaks and kind not in row.next_charge:
        return Standing.UNSEEN
    if row.key.fingerprint != fingerprint:
        return Standing.EDITED
    if not sampled:
        return Standing.GUESS
    return Standing.COUNTS if row.completed and kind in row.peaks else Standing.BOUND
