"""The processes inside a pool, one line each, bounded: whose each is, by which rule, how much it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from .attribution import ENDED
from .resources import MIB
from .samples import Attribution, Reading

MOST = 50
"""Processes listed per pool; the others are summed by owner."""

_LEAST = MIB // 2
"""A process with less is not listed alone: what is drawn in MiB would show it as nothing."""


@dataclass(frozen=True, slots=True)
class Inside:
    """One process in one pool. ``owner`` and ``rule`` are "" for one that is nobody's of ours; bytes None: unknown."""

    pid: int
    owner: str
    rule: str
    user: str
    name: str
    amount: int | None


@dataclass(frozen=True, slots=True)
class More:
    """What is not listed of one owner: how many processes, and their bytes; None where one of them is unknown."""

    owner: str
    count: int
    amount: int | None


def inside(
    reading: Reading, found: Attribution, guesses: Mapping[int, str] | None = None
) -> dict[str, tuple[tuple[Inside, ...], tuple[More, ...]]]:
    """Return (listed, not listed) per pool that was read.

    Ours come first, then the largest, so that a machine full of strangers does not hide a job's small process.
    Amounts are rounded to MiB: a list that reads the same is the same, and need not be written again. ``guesses`` by
    pid stand in the place of a rule for what is nobody's, though somebody may have started it.
    """
    return {name: _of(reading, found, amounts, guesses or {}) for name, amounts in found.amounts.items()}


def _of(
    reading: Reading, found: Attribution, amounts: Mapping[int, int | None], guesses: Mapping[int, str]
) -> tuple[tuple[Inside, ...], tuple[More, ...]]:
    rules = found.rules
    ours = [pid for pid in rules if pid in amounts]
    chosen = [pid for pid in _largest(ours, amounts) if _worth(amounts[pid])]
    strangers = amounts.keys() - rules.keys()
    if len(chosen) < MOST:
        chosen += [pid for pid in _largest(strangers, amounts)[: MOST - len(chosen)] if _worth(amounts[pid])]
    listed = tuple(_line(reading, pid, *rules.get(pid, ("", guesses.get(pid, ""))), amounts[pid]) for pid in chosen)
    apart = set(chosen)
    rest: dict[str, list[int | None]] = {}
    for pid in [*ours, *strangers]:
        if amounts[pid] != 0 and pid not in apart:
            rest.setdefault(rules[pid][0] if pid in rules else "", []).append(amounts[pid])
    return listed, tuple(More(owner, len(sizes), _sum(sizes)) for owner, sizes in sorted(rest.items()))


def _sum(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return _rounded(sum(known)) if len(known) == len(sizes) else None


def _largest(pids: Iterable[int], amounts: Mapping[int, int | None]) -> list[int]:
    return nsmallest(MOST, pids, key=lambda pid: (-(amounts[pid] or 0), pid))


def _worth(amount: int | None) -> bool:
    return amount is None or amount >= _LEAST


def _line(reading: Reading, pid: int, owner: str, rule: str, amount: int | None) -> Inside:
    process = reading.processes.get(pid)
    if process is None:
        return Inside(pid, owner, rule, "", ENDED, None if amount is None else _rounded(amount))
    user = process.user or ("" if process.uid is None else str(process.uid))
    return Inside(pid, owner, rule, user, process.name, None if amount is None else _rounded(amount))


def _rounded(amount: int) -> int:
    return (amount + MIB // 2) // MIB * MIB
