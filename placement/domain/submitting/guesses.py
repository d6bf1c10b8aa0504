"""What people declared against what was used: too little, or far too much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from calibration.domain.resources import gib

FAR = 1.5
"""A guess this many times what was used keeps others out for nothing; see the knob two_kinds_factor."""


@dataclass(frozen=True, slots=True)
class Guess:
    """One run: what was declared for it (bytes, None: nothing) and its peak, None where none was seen."""

    declared: int | None
    peak: int | None
    completed: bool = True


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence on guesses that are off; ``tone`` is that of its chip."""

    which: Literal["under", "over"]
    sentence: str
    short: str

    @property
    def tone(self) -> str:
        """Return "stop" for too little: such a run is cut off or takes what others were promised."""
        return "stop" if self.which == "under" else "wait"


def remark(guesses: Sequence[Guess], what: str = "declared", preset: int | None = None) -> Remark | None:
    """Return what to say of guesses, newest first; of an author's ``preset`` (bytes) instead, if there is one.

    The newest guess is held against all runs: whoever corrected it is not told about the old one.
    """
    said = preset if preset is not None else next((g.declared for g in guesses if g.declared), None)
    peaks = [g.peak for g in guesses if g.peak is not None]
    if said is None or not peaks:
        return None
    above = [peak for peak in peaks if peak > said]
    if above:
        most = max(above)
        of = f"{len(above)} of {len(peaks)} runs" if len(above) < len(peaks) else _runs(len(above))
        return Remark("under", f"{what} {gib(said, most)}, {gib(most, said)} was used in {of}", "declared too little")
    whole = [g.peak for g in guesses if g.completed and g.peak is not None]
    if not whole or said <= max(whole) * FAR:
        return None
    most = max(whole)
    return Remark(
        "over",
        f"{what} {gib(said, most)}, at most {gib(most, said)} was used in {_runs(len(peaks))}",
        "declared too much",
    )


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count:,} runs"
