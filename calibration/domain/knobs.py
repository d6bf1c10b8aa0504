"""Every figure of the instrument that may be turned: default, unit and what it does."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TypeVar

from .errors import BadKnob
from .resources import MIB

Figure = TypeVar("Figure", int, float)
# The most that a figure may be where it does not say: what no machine has, and no sum chokes on.
MOST = {"share": 1.0, "times": 100.0, "MiB": float(2**30), "s": 31_536_000.0, "runs": 10_000.0, "samples": 10_000.0}


@dataclass(frozen=True, slots=True)
class Knob:
    """One line of the table that pages and documentation show. ``low`` and ``high`` are inclusive."""

    name: str
    default: int | float
    unit: str
    help: str
    low: float
    high: float


def _knob(default: Figure, unit: str, help: str, low: float = 0, high: float | None = None) -> Figure:
    bounds = {"low": low, "high": MOST[unit] if high is None else high}
    field: Figure = dataclasses.field(default=default, metadata={"unit": unit, "help": help, **bounds})
    return field


@dataclass(frozen=True, slots=True)
class Knobs:
    """The figures in force. Sizes are MiB, times seconds, shares parts of one."""

    measured_margin_mib: int = _knob(64, "MiB", "Margin of a need that was measured with these parameters.")
    fitted_margin: float = _knob(
        0.05, "share", "Margin of a need read off a line through several worker counts.", high=10
    )
    scaled_margin: float = _knob(
        0.15, "share", "Margin of a need scaled from one worker count or an open run.", high=10
    )
    edited_margin: float = _knob(0.15, "share", "Margin of a need known from before the sources changed.", high=10)
    similar_margin: float = _knob(0.15, "share", "Margin of a need known from other arguments of the script.", high=10)
    hint_margin: float = _knob(0.15, "share", "Margin of the author's preset.", high=10)
    declared_margin: float = _knob(0.05, "share", "Margin of the submitter's guess.", high=10)

    quantile: float = _knob(0.9, "share", "Share of completed runs that the measured need covers.")
    window_rows: int = _knob(50, "runs", "How many of the newest runs count.", 1)
    few_rows: int = _knob(10, "runs", "With fewer completed runs than this the largest counts.")
    two_kinds_factor: float = _knob(1.5, "times", "A largest run this far above the quantile counts itself.")
    preallocated_share: float = _knob(0.75, "share", "Part of a preallocated level that the next run starts on.")

    context_allowance_mib: int = _knob(512, "MiB", "What a process's device context is taken to cost.")
    stale_seconds: float = _knob(5.0, "s", "A longer time without a reading proves nothing about the time between.")
    min_samples: int = _knob(2, "samples", "A kind of memory sampled less often in a run is not learned.")
    blind_share: float = _knob(
        0.5, "share", "A completed run unseen for a longer part than this gives a lower bound only."
    )

    settle_seconds: float = _knob(60.0, "s", "How long a job must have worked since its last rise to settle.")
    settle_context_factor: float = _knob(1.5, "times", "Context allowances it must have held on its device to settle.")
    settle_busy: float = _knob(0.10, "share", "Device activity above which a job counts as working.")
    flat_fraction: float = _knob(0.02, "share", "A level within this share of the last rise is flat.")
    flat_mib: int = _knob(64, "MiB", "A level within this much of the last rise is flat.")
    settle_factor: float = _knob(1.1, "times", "A settled charge is the highest level times this, plus the next knob.")
    settle_add_mib: int = _knob(256, "MiB", "Added to the settled charge.")
    settle_peak_factor: float = _knob(1.5, "times", "A measured charge settles after this many times to its peak.")
    unproven_settle_seconds: float = _knob(900.0, "s", "A job flat for this long settles without proof.")
    unseen_context_factor: float = _knob(2.0, "times", "Context allowances kept for a job never seen on its device.")
    unseen_mib: int = _knob(1024, "MiB", "The least that is kept for a job never seen on its device.")

    cap_factor: float = _knob(1.35, "times", "A cap is the granted charge times this, at least.")
    cap_add_mib: int = _knob(512, "MiB", "A cap is the granted charge plus this, at least.")
    death_factor: float = _knob(1.5, "times", "After a memory death at the cap: the next charge, in caps.")
    death_add_mib: int = _knob(512, "MiB", "After a memory death: at least this much more.")
    watchdog_factor: float = _knob(1.2, "times", "After the watchdog stopped a job: the next charge, in use seen.")

    prealloc_jump: float = _knob(0.9, "share", "Part of the level reached within three readings by a preallocation.")
    prealloc_tolerance: float = _knob(0.03, "share", "How near a preallocation is to a usual share of the device.")

    @classmethod
    def defaults(cls) -> Knobs:
        """Return the figures as shipped."""
        return cls()

    def replace(self, **figures: int | float) -> Knobs:
        """Return these knobs with some figures changed. Raises BadKnob on a wrong name, type or size."""
        table = {knob.name: knob for knob in KNOBS}
        for name, figure in figures.items():
            if name not in table:
                raise BadKnob(f"There is no knob {name!r}. Known are: {', '.join(sorted(table))}.")
            whole = isinstance(table[name].default, int)
            if isinstance(figure, bool) or not isinstance(figure, int if whole else int | float):
                raise BadKnob(f"{name} is {_clip(figure)}, but must be a {'whole ' if whole else ''}number.")
            low, high = table[name].low, table[name].high
            if not low <= figure <= high:  # a NaN is neither
                raise BadKnob(f"{name} is {_clip(figure)}, but must be from {low:g} to {high:,g} ({table[name].unit}).")
        return dataclasses.replace(self, **figures)  # type: ignore[arg-type]  # each figure was checked above

    def bytes_of(self, name: str) -> int:
        """Return a size knob (its name ends in ``_mib``) in bytes."""
        return int(getattr(self, name)) * MIB


def _clip(figure: object) -> str:
    """Return a figure for a sentence; Python writes no number of more than 4,300 digits."""
    if isinstance(figure, int) and abs(figure) > 10**40:
        return "a number of more than 40 digits"
    shown = repr(figure)
    return shown if len(shown) <= 43 else f"{shown[:42]}…"


DEFAULTS = Knobs.defaults()
KNOBS: tuple[Knob, ...] = tuple(
    Knob(name=field.name, default=getattr(DEFAULTS, field.name), **field.metadata)
    for field in dataclasses.fields(Knobs)
)
