"""Estimates: the expected need per kind of memory, and the rung of the trust ladder that it stands on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from . import resources
from .absent import Seen, why_none
from .curve import Figure, curve, learned_peak, lower_bound, sampled_first
from .deaths import next_charge_after_death
from .knobs import DEFAULTS, Knobs
from .ladder import Basis, Rung, margin_for
from .resources import gib
from .sediment import Key, Row

__all__ = [
    "Basis",
    "Estimate",
    "PoolEstimate",
    "Rung",
    "estimate",
    "margin_for",
    "next_charge_after_death",
]


@dataclass(frozen=True, slots=True)
class PoolEstimate:
    """The need of one kind of memory in bytes, None when nothing is known (``basis`` is cold_start then).

    ``rungs`` are all eight, best first; ``at_least`` is what runs that did not complete prove, also where
    there is no need to raise. ``promise``: it was asked for to the byte, and stays whatever is used. ``said`` is a
    person's word: the submitter's guess, else the author's preset.
    """

    kind: str
    need: int | None
    basis: Basis
    margin: int | None
    rungs: tuple[Rung, ...]
    notes: tuple[str, ...] = ()
    at_least: int | None = None
    promise: bool = False
    said: int | None = None

    @property
    def booked(self) -> int | None:
        """Return the need on a device that nobody measures: the larger of what was learned elsewhere and what was said.

        No run there corrects a figure that is too small. None where neither is more than nothing: it has to be said.
        """
        return self.need if self.promise else max(self.need or 0, self.said or 0) or None


@dataclass(frozen=True, slots=True)
class Estimate:
    """One key's estimate; its basis is the worst of its pools.

    ``need`` is the total of the pools in bytes, None when one is unknown; ``known`` the sum of the known
    ones.
    """

    pools: Mapping[str, PoolEstimate]
    basis: Basis
    need: int | None
    known: int
    notes: tuple[str, ...] = ()


def estimate(
    key: Key,
    rows: Sequence[Row],
    *,
    needs: frozenset[str],
    hint: Mapping[str, int] | None = None,
    declared: Mapping[str, int] | None = None,
    pinned: Mapping[str, int] | None = None,
    knobs: Knobs = DEFAULTS,
) -> Estimate:
    """Return what a run of ``key`` is expected to need of each kind of memory in ``needs``.

    ``rows`` may be those of other keys too; the key chooses. ``hint`` is the author's preset, ``declared``
    the submitter's guess, ``pinned`` an operator's number, all bytes per kind ("ram", "vram").
    """
    pools = {
        kind: _pool(
            kind,
            key,
            rows,
            hint=(hint or {}).get(kind),
            # A declared 0 for memory that the job does take says nothing, so it is no guess.
            declared=(declared or {}).get(kind) or None,
            pinned=(pinned or {}).get(kind),
            knobs=knobs,
        )
        for kind in sorted(needs)
    }
    amounts = [pool.need for pool in pools.values()]
    notes = tuple(f"{kind}: {note}" for kind, pool in pools.items() for note in pool.notes)
    basis = min((pool.basis for pool in pools.values()), default=Basis.MEASURED)
    return Estimate(pools, basis, resources.total(amounts), resources.known(amounts), notes)


def _pool(
    kind: str,
    key: Key,
    rows: Sequence[Row],
    *,
    hint: int | None,
    declared: int | None,
    pinned: int | None,
    knobs: Knobs,
) -> PoolEstimate:
    workers = max(1, key.workers)
    same = sampled_first(
        [row for row in rows if (row.key.workload, row.key.params) == (key.workload, key.params)], kind
    )
    current = [row for row in same if row.key.fingerprint == key.fingerprint]
    older = _last_other(same, key.fingerprint, kind)
    now = curve(current, kind, workers, knobs)
    guessed = kind == "ram" and any(row.by_kernel for row in same)  # nobody was sampled to the end
    bound = lower_bound(current if now.best and not guessed else [*current, *older], kind, workers, knobs)
    figures = {
        Basis.MEASURED: Figure(pinned, "pinned by an operator") if pinned is not None else now.measured,
        Basis.FITTED: now.fitted,
        Basis.SCALED: now.scaled,
        Basis.EDITED: _edited(older, kind, workers, knobs),
        Basis.SIMILAR: _similar(key, rows, kind, knobs),
        Basis.HINT: None if hint is None else Figure(hint, "the author's preset"),
        Basis.DECLARED: None if declared is None else Figure(declared, "the submitter's guess"),
        Basis.COLD_START: None,
    }
    basis = next((basis for basis, figure in figures.items() if figure is not None), Basis.COLD_START)
    counted, notes = figures[basis], []
    if bound is not None:
        if counted is None or (pinned is not None and bound.bytes > pinned):
            notes.append(bound.why)
        elif bound.bytes > counted.bytes:
            figures[basis] = counted = Figure(bound.bytes, f"{counted.why}; {bound.why}", counted.notes)
    if counted is not None:
        notes += counted.notes
        if declared is not None and basis > Basis.HINT and _far_above(counted.bytes, declared, knobs):
            notes.append(f"declared {gib(declared, counted.bytes)}, but {gib(counted.bytes, declared)} was seen")
    need = None if counted is None else counted.bytes
    seen = Seen(key, kind, current, older)
    rungs = tuple(_rung(rung, figure, rung is basis, knobs, seen) for rung, figure in figures.items())
    at_least = None if bound is None else bound.bytes
    said = hint if declared is None else declared
    return PoolEstimate(kind, need, basis, margin_for(basis, need, knobs), rungs, tuple(notes), at_least, said=said)


def _far_above(seen: int, declared: int, knobs: Knobs) -> bool:
    return seen > declared * knobs.two_kinds_factor


def _rung(basis: Basis, figure: Figure | None, counted: bool, knobs: Knobs, seen: Seen) -> Rung:
    if figure is None:
        cold = basis is Basis.COLD_START and counted
        why = "nothing is known: it is watched first" if cold else why_none(basis, seen)
        return Rung(basis, None, margin_for(basis, None, knobs) if counted else None, why, counted)
    return Rung(basis, figure.bytes, margin_for(basis, figure.bytes, knobs), figure.why, counted)


def _last_other(same: Sequence[Row], fingerprint: str, kind: str) -> list[Row]:
    """Return the rows of the other fingerprint that completed last."""
    others = [row for row in same if row.key.fingerprint != fingerprint and kind in {*row.peaks, *row.next_charge}]
    if not others:
        return []
    last = max(others, key=lambda row: (row.completed and not row.atypical, row.at))
    return [row for row in others if row.key.fingerprint == last.key.fingerprint]


def _edited(older: Sequence[Row], kind: str, workers: int, knobs: Knobs) -> Figure | None:
    figure = curve([row for row in older if not row.open], kind, workers, knobs).best
    if figure is None:
        return None
    bound = lower_bound(older, kind, workers, knobs)
    before = replace(figure, why=f"before the sources changed: {figure.why}")
    if bound is None or bound.bytes <= before.bytes:
        return before
    return replace(before, bytes=bound.bytes, why=f"{before.why}; {bound.why}")


def _similar(key: Key, rows: Sequence[Row], kind: str, knobs: Knobs) -> Figure | None:
    peaks = [
        learned_peak(row, kind, knobs)
        for row in sampled_first([row for row in rows if key.script and row.key.script == key.script], kind)
        if row.completed and not row.open and not row.atypical
        if kind in row.peaks
    ]
    if not peaks:
        return None
    runs = "1 completed run" if len(peaks) == 1 else f"the largest of {len(peaks)} completed runs"
    return Figure(max(peaks), f"{runs} of the script, whatever its arguments")
