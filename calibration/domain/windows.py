"""Windows: what one owner used from its start until now, raised by each reading and closed into a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .deaths import Death, next_charge_after_death
from .knobs import DEFAULTS, Knobs
from .resources import MIB, MOST, gib
from .sediment import Key, Row

_RECENT = 3  # readings within which a preallocation is complete
_LEADER_AND_ONE = 2  # processes that may be as large as the largest, at least; with more workers, all and the leader
_LEAST_BY_KERNEL = 64 * MIB  # what the kernel's figure says at least: it knows nothing of shared memory and files


@dataclass(frozen=True, slots=True)
class Level:
    """What one kind of memory did in a window. Bytes; times are the readings' monotonic seconds.

    A rise is a reading above ``risen_to`` (the level at the last rise) by more than the flat band.
    ``flat_seconds`` and ``worked_seconds`` are the seconds since it that were seen at all, and seen working.
    ``jump`` is the largest rise within three readings, ``low`` the lowest level since the last rise without
    the newest reading (a run that ends is caught letting go).
    """

    peak: int
    current: int
    at: float
    risen_to: int
    rose_at: float
    low: int
    samples: int = 1
    longest_gap: float = 0.0
    flat_seconds: float = 0.0
    worked_seconds: float = 0.0
    jump: int = 0
    recent: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """One owner's window. ``started_at`` is monotonic; ``levels`` holds each kind that was ever known."""

    started_at: float
    last_at: float | None = None
    levels: Mapping[str, Level] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        """Return this window as JSON types, for keeping it over a restart of the same boot."""
        return dataclasses.asdict(replace(self, levels=dict(self.levels)))

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Window:
        """Return the window that ``as_data`` wrote; fields of a later version are ignored."""
        names = {f.name for f in dataclasses.fields(Level)}
        levels: dict[str, Level] = {}
        for kind, kept in data["levels"].items():
            facts: dict[str, Any] = {name: value for name, value in kept.items() if name in names}
            levels[kind] = Level(**facts | {"recent": tuple(kept.get("recent", ()))})
        return cls(started_at=data["started_at"], last_at=data.get("last_at"), levels=levels)


def both_in_one(window: Window) -> Window:
    """Return the window with one level for both kinds, under "ram": a device that shares main memory fills one pool.

    Its peak is the sum of both peaks, which is never too little; it is as flat and has worked as long as the less so.
    """
    ram, vram = window.levels.get("ram"), window.levels.get("vram")
    if ram is None or vram is None:
        return replace(window, levels={kind: level for kind, level in window.levels.items() if kind != "ram"})
    both = replace(
        ram,
        peak=ram.peak + vram.peak,
        current=ram.current + vram.current,
        flat_seconds=min(ram.flat_seconds, vram.flat_seconds),
        worked_seconds=min(ram.worked_seconds, vram.worked_seconds),
    )
    return replace(window, levels={**window.levels, "ram": both})


def observe(
    window: Window,
    at: float,
    amounts: Mapping[str, int | None],
    busy: float | None,
    knobs: Knobs = DEFAULTS,
) -> Window:
    """Return the window after one reading of its owner: bytes per kind, None where unknown (no sample then).

    ``busy`` is the share of time its devices worked, None where the driver does not tell (then time counts).
    The same reading again, or an older one, changes nothing.
    """
    if window.last_at is not None and at <= window.last_at:
        return window
    levels = dict(window.levels)
    for kind, amount in amounts.items():
        if amount is not None:
            before = levels.get(kind)
            levels[kind] = _first(window, at, amount) if before is None else _next(before, at, amount, busy, knobs)
    return replace(window, last_at=at, levels=levels)


def close(
    window: Window,
    ended_at: float,
    outcome: str,
    *,
    key: Key,
    wall: float = 0.0,
    charge: Mapping[str, int] | None = None,
    cap: Mapping[str, int] | None = None,
    died_of: Mapping[str, Death] | None = None,
    preallocated: bool = False,
    unexplained: Mapping[str, int] | None = None,
    note: str = "",
    kernel_peak: int | None = None,
    most: Mapping[str, int] | None = None,
    knobs: Knobs = DEFAULTS,
) -> Row | None:
    """Return the row that a run leaves, None when nothing was seen often enough to say anything.

    ``died_of`` maps the kind that a memory death concerns to how it came; ``unexplained`` are bytes per kind
    that no process list explains and that came and went with the run; ``wall`` is the unix second of the end.
    ``kernel_peak`` is the kernel's figure (bytes of RSS) for the largest of the run's processes. It stands for the
    RAM of a completed run that was too short to be sampled; nobody keeps such a figure for a device. ``most`` is what
    a pool gives to one run at most: what a death asks for is cut to it unless the run had all of it already.
    """
    charge, cap = dict(charge or {}), dict(cap or {})
    seen = {kind: level for kind, level in window.levels.items() if level.samples >= knobs.min_samples}
    peaks = {kind: level.peak for kind, level in seen.items()}
    gaps = {kind: max(level.longest_gap, ended_at - level.at) for kind, level in seen.items()}
    duration = max(0.0, ended_at - window.started_at)
    next_charge: dict[str, int] = {}
    notes = [note] if note else []
    for kind, gap in gaps.items():
        if outcome == "completed" and gap > max(knobs.stale_seconds, knobs.blind_share * duration):
            next_charge[kind] = peaks.pop(kind)
            notes.append(f"{kind}: lower bound, unseen for {gap:.0f} of {duration:.0f} s")
    by_kernel = outcome == "completed" and "ram" not in seen and 0 < (kernel_peak or 0) <= MOST
    if by_kernel and kernel_peak:
        times = max(_LEADER_AND_ONE, key.workers + 1)
        once = window.levels["ram"].peak if "ram" in window.levels else 0
        peaks["ram"] = max(kernel_peak * times, once, _LEAST_BY_KERNEL)
        notes.append(f"ram: too short to be sampled: {_often(times)} the kernel's peak of its largest process")
        if "vram" in charge and "vram" not in seen:
            notes.append("vram: too short to be seen on its device")
    for kind, how in (died_of or {}).items():
        used = window.levels[kind].peak if kind in window.levels else None
        asked = next_charge_after_death(used, charge.get(kind), cap.get(kind), how, knobs)
        if asked is not None:
            had, gives = charge.get(kind), (most or {}).get(kind)
            # Who had less than all of it is given all of it next; who had all needs more than such a pool has.
            next_charge[kind] = asked if had is None or gives is None or had >= gives else min(asked, gives)
    for kind, amount in (unexplained or {}).items():
        if amount > 0:
            notes.append(f"{kind}: lower bound, up to {gib(amount)} more began with this job")
    if not peaks and not next_charge:
        return None
    return Row(
        key=key,
        completed=outcome == "completed",
        outcome=outcome,
        peaks=peaks,
        seconds_to_peak={kind: seen[kind].rose_at - window.started_at for kind in peaks if kind in seen},
        duration=duration,
        samples={kind: level.samples for kind, level in window.levels.items()},
        longest_gap=max(gaps.values(), default=duration),
        charge=charge,
        cap=cap,
        next_charge=next_charge,
        lower_bound_note="; ".join(notes),
        preallocated=preallocated,
        by_kernel=by_kernel,
        at=wall,
    )


def _often(times: int) -> str:
    return "twice" if times == _LEADER_AND_ONE else f"{times} times"


def open_row(window: Window, key: Key, *, wall: float = 0.0, charge: Mapping[str, int] | None = None) -> Row | None:
    """Return the row of a settled run that still goes on, None when nothing was seen of it yet."""
    if not window.levels:
        return None
    return Row(
        key=key,
        completed=False,
        outcome="running",
        peaks={kind: level.peak for kind, level in window.levels.items()},
        seconds_to_peak={kind: level.rose_at - window.started_at for kind, level in window.levels.items()},
        duration=max(0.0, (window.last_at or window.started_at) - window.started_at),
        samples={kind: level.samples for kind, level in window.levels.items()},
        longest_gap=max(level.longest_gap for level in window.levels.values()),
        charge=dict(charge or {}),
        open=True,
        at=wall,
    )


def flat_band(level: int, knobs: Knobs) -> int:
    """Return by how many bytes a level may exceed its last rise and still count as flat."""
    return max(int(level * knobs.flat_fraction), knobs.bytes_of("flat_mib"))


def _first(window: Window, at: float, amount: int) -> Level:
    # Whatever is there at the first look came since the start, so it may be the whole jump.
    return Level(
        peak=amount,
        current=amount,
        at=at,
        risen_to=amount,
        rose_at=at,
        low=amount,
        longest_gap=max(0.0, at - window.started_at),
        jump=amount,
        recent=(amount,),
    )


def _next(level: Level, at: float, amount: int, busy: float | None, knobs: Knobs) -> Level:
    step = replace(
        level,
        peak=max(level.peak, amount),
        current=amount,
        at=at,
        samples=level.samples + 1,
        longest_gap=max(level.longest_gap, at - level.at),
        jump=max(level.jump, amount - min(level.recent)),
        recent=(*level.recent, amount)[-_RECENT:],
    )
    if amount > level.risen_to + flat_band(level.risen_to, knobs):
        return replace(step, risen_to=amount, rose_at=at, low=amount, flat_seconds=0.0, worked_seconds=0.0)
    proven = min(at - level.at, knobs.stale_seconds)
    worked = proven if busy is None or busy > knobs.settle_busy else 0.0
    return replace(
        step,
        low=min(level.low, level.current),
        flat_seconds=level.flat_seconds + proven,
        worked_seconds=level.worked_seconds + worked,
    )
