"""What is kept of closed windows: immutable rows from which every estimate is derived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Key:
    """What a run is learned under.

    ``workload`` names the workload (typed commands: user and program), ``fingerprint`` its source files' hash (""
    when there is none to take), ``params`` the canonical text of all memory-relevant parameters, ``script`` the
    script or program alone (rung ``similar``), ``workers`` the number of parallel workers (>= 1).
    """

    workload: str
    fingerprint: str
    params: str
    script: str
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Row:
    """One closed window. ``peaks`` maps pool kind ("ram", "vram") to bytes; a kind not sampled is absent.

    ``lower_bounds`` are figures that the true need is at least (memory deaths: the cap; unexplained growth).
    ``samples`` counts samples per kind, ``longest_gap`` seconds between two of them. ``open`` marks the settled
    window of a run that still goes on. ``next_charge`` is what a memory death asks the next run to be charged.
    """

    key: Key
    completed: bool
    peaks: Mapping[str, int]
    outcome: str = "completed"
    seconds_to_peak: Mapping[str, float] = field(default_factory=dict)
    duration: float = 0.0
    samples: Mapping[str, int] = field(default_factory=dict)
    longest_gap: float = 0.0
    charge: Mapping[str, int] = field(default_factory=dict)
    cap: Mapping[str, int] = field(default_factory=dict)
    next_charge: Mapping[str, int] = field(default_factory=dict)
    lower_bound_note: str = ""
    preallocated: bool = False
    atypical: bool = False
    open: bool = False
    at: float = 0.0  # unix seconds of the end; newer rows count first
