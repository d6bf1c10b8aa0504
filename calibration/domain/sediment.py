"""What is kept of closed windows: immutable rows from which every estimate is derived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Key:
    """What a run is learned under.

    ``workload`` names the workload (typed commands: user and program), ``fingerprint`` its source files'
    hash, "" when there is none to take. ``params`` is the canonical text of all memory-relevant parameters,
    ``script`` the script or program alone (rung ``similar``), ``workers`` the parallel workers (>= 1).
    """

    workload: str
    fingerprint: str
    params: str
    script: str
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Row:
    """One closed window. ``peaks`` maps pool kind ("ram", "vram") to bytes; a kind not sampled is absent.

    ``samples`` counts samples per kind, ``longest_gap`` is the longest time in seconds without one.
    ``open`` marks the settled window of a run that still goes on. ``next_charge`` is what the next run
    must be charged at least, until a completed run was charged as much (memory deaths; runs unseen for too
    long). ``lower_bound_note`` says why a peak may be too low or is no need. ``preallocated`` marks a run
    that took at once what it was given, under a cap that its processes acknowledged. ``by_kernel``: its RAM was
    hardly sampled; the figure is the kernel's for the largest process, times what there may have been of them.
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
    by_kernel: bool = False
    atypical: bool = False
    open: bool = False
    at: float = 0.0  # unix seconds of the end; newer rows count first
