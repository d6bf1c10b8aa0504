"""What one run used of one pool over its time, under its estimate, its charge and its cap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibration.selectors import Trace
from placement.charts.traces import amounts, area, figure, gib, line, millis, times

LINES = (
    ("cap", "cap", "stop", "solid"),
    ("charge", "charge", "ink", "solid"),
    ("at_start", "charge at its start", "soft", "dash"),
    ("estimate", "estimate", "wait", "dot"),
)
"""(figure, name, tone, dash), from the top of the chart down."""


def nothing() -> dict[str, Any]:
    """Return the figure of a job that has not started."""
    return figure([], version="none")


def memory(
    trace: Trace, tone: str, levels: Mapping[str, int | None], start: int, end: int, version: str
) -> dict[str, Any]:
    """Return the figure: ``levels`` in bytes by the names in ``LINES``, None where there is none to draw."""
    data = [area("used", tone, millis(trace.at), gib(trace.amounts), key="used")]
    for key, name, colour, dash in LINES:
        amount = levels.get(key)
        if amount is not None and any(known is not None for known in trace.amounts):
            data.append(line(name, colour, millis((start, end)), gib((amount, amount)), dash=dash, key=key))
    return figure(data, {"xaxis": times(), "yaxis": amounts()}, version=version)
