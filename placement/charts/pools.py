"""Plotly figures as plain dicts: stacked owners below a line of capacity. Colours are names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibration.domain.resources import GIB
from calibration.selectors import Series
from placement.selectors.tanks import tone

EXTERNAL = "external"


def external(series: Series) -> list[int | None]:
    """Return what nobody of ours holds at each point, None where use is unknown, never below zero."""
    return [
        None if used is None else max(0, used - sum(amounts[i] for amounts in series.owners.values()))
        for i, used in enumerate(series.used)
    ]


def figure(series: Series, names: Mapping[str, str], declared: int | None) -> dict[str, Any]:
    """Return everything a chart draws, bytes as GiB; ``names`` maps owner to what to call it."""
    at = list(series.at)
    traces = [
        _area(owner, names.get(owner, owner), _tone(owner), at, list(amounts))
        for owner, amounts in series.owners.items()
    ]
    traces.append(_area(EXTERNAL, "external", "ext", at, external(series)))
    traces.append(_line("total", "capacity", "ink", at, list(series.total)))
    if declared is not None:
        traces.append(_line("declared", "declared", "wait", at, [declared for _ in at]))
    return {"data": traces, "step": series.step, "last": at[-1] if at else None}


def _area(key: str, name: str, colour: str, at: list[int], amounts: list[int | None]) -> dict[str, Any]:
    return {
        "meta": {"key": key, "tone": colour},
        "name": name,
        "x": _times(at),
        "y": _gib(amounts),
        "mode": "lines",
        "stackgroup": "use",
        "line": {"width": 0.5},
        "hovertemplate": "%{y:.2f} GiB",
    }


def _line(key: str, name: str, colour: str, at: list[int], amounts: list[int | None]) -> dict[str, Any]:
    return {
        "meta": {"key": key, "tone": colour},
        "name": name,
        "x": _times(at),
        "y": _gib(amounts),
        "mode": "lines",
        "line": {"width": 1.5, "dash": "dot" if key == "declared" else "solid"},
        "hovertemplate": "%{y:.2f} GiB",
    }


def _tone(owner: str) -> str:
    number = owner.removeprefix("job:")
    return tone(int(number)) if number.isdecimal() else "faint"


def _times(at: list[int]) -> list[int]:
    return [second * 1000 for second in at]  # milliseconds, as browsers count


def _gib(amounts: list[int | None]) -> list[float | None]:
    return [None if amount is None else round(amount / GIB, 4) for amount in amounts]
