"""Other rules that rungs of the ladder might follow, kept so that the choice can be looked at again. Sizes in MiB."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from itertools import product as combinations

from bench.guesses import Asked, History, Rule, charged, quantile
from calibration.domain.knobs import DEFAULTS
from calibration.domain.resources import MIB
from calibration.domain.sediment import Row

MARGIN = DEFAULTS.measured_margin_mib


def measured() -> dict[str, Rule]:
    """Return the product's estimate with other quantiles, other numbers of rows, and others below which all count."""
    return {
        f"{share:.0%} of {rows}, the largest of fewer than {few}": _with(share, rows, few)
        for share, rows, few in combinations((0.8, 0.9, 0.95, 1.0), (10, 50, 200), (10, 20))
    }


def _with(share: float, rows: int, few: int) -> Rule:
    knobs = DEFAULTS.replace(quantile=share, window_rows=rows, few_rows=few)
    return lambda history, asked: charged(history, asked, knobs)


def edited() -> dict[str, Rule]:
    """Return rules for a key whose sources change: newest runs whatever the sources, until enough have the new ones."""
    return {
        f"largest of the newest {newest} + {margin:.0%}, until 3 have the new sources": _mixed(newest, margin, 3)
        for newest, margin in combinations((3, 5, 10), (0.0, 0.05, 0.1))
    }


def _mixed(newest: int, margin: float, enough: int) -> Rule:
    def rule(history: History, asked: Asked) -> float | None:
        rows = history.by_key[asked.key.workload, asked.key.params]
        if not rows:
            return None
        new = [row for row in rows if row.key.fingerprint == asked.key.fingerprint]
        if len(new) >= enough:
            return quantile(_peaks(new[-50:]), 0.9) + MARGIN
        largest = max(_peaks(rows[-newest:] + new))
        return largest + max(MARGIN, 0.0 if new else margin * largest)

    return rule


def similar() -> dict[str, Rule]:
    """Return rules for a key without a run, from other arguments of its script; and declarations beside them.

    They never see runs of the key itself, so that each run of a trace can be asked as if its key were new. All answer
    the same questions: those where the script is known and the submitter declared something.
    """
    found: dict[str, Rule] = {}
    for margin in (0.0, 0.15):
        for name, chosen in _FROM_OTHERS.items():
            found[f"{name} + {margin:.0%}"] = _from_others(chosen, margin)
    largest = found["largest + 15%"]

    def declared(history: History, asked: Asked) -> float | None:
        return None if largest(history, asked) is None else asked.row.declared * (1 + DEFAULTS.declared_margin)

    def larger(history: History, asked: Asked) -> float | None:
        seen, said = largest(history, asked), declared(history, asked)
        return None if seen is None or said is None else max(seen, said)

    return found | {"declared + 5%": declared, "the larger of largest + 15% and declared + 5%": larger}


Choice = Callable[[Sequence[Row], Asked], float]


def _from_others(chosen: Choice, margin: float) -> Rule:
    def rule(history: History, asked: Asked) -> float | None:
        rows = [row for row in history.by_script[asked.key.script] if row.key.params != asked.key.params]
        return chosen(rows, asked) * (1 + margin) if rows and asked.row.declared else None

    return rule


def _nearest(rows: Sequence[Row], asked: Asked) -> float:
    """Return the quantile of the arguments nearest to these, by the ratio of their first numbers."""
    wanted = _number(asked.key.params)
    near = min({row.key.params for row in rows}, key=lambda params: (abs(math.log(_number(params) / wanted)), params))
    return quantile(_peaks([row for row in rows if row.key.params == near][-50:]), 0.9)


def _number(params: str) -> float:
    found = re.search(r"[1-9]\d*", params.partition(":")[2])
    return float(found[0]) if found else 1.0


_FROM_OTHERS: dict[str, Choice] = {
    "largest": lambda rows, asked: max(_peaks(rows)),
    "90 % quantile of 50": lambda rows, asked: quantile(_peaks(rows[-50:]), 0.9),
    "median of 50": lambda rows, asked: quantile(_peaks(rows[-50:]), 0.5),
    "last run": lambda rows, asked: _peaks(rows)[-1],
    "nearest arguments": _nearest,
}


def _peaks(rows: Sequence[Row]) -> list[float]:
    return [row.peaks["vram"] / MIB for row in rows if "vram" in row.peaks]
