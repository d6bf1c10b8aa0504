"""Figures of one workload: peaks over workers and over time, their spread, durations. Retired runs are grey."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from calibration.domain.resources import gib
from calibration.domain.standing import Standing
from placement.charts import traces
from placement.selectors.workload_runs import Run

GROUPS = (
    ("counts", "run", "circle", (Standing.COUNTS,)),
    ("△ lower bound: did not complete", "stop", "triangle-up-open", (Standing.BOUND,)),
    ("□ sources edited since", "faint", "square-open", (Standing.EDITED,)),
    ("✕ not typical", "faint", "x", (Standing.ATYPICAL,)),
    ("✚ forgotten", "faint", "cross", (Standing.FORGOTTEN,)),
    ("○ enough newer runs, or too short", "faint", "circle-open", (Standing.OLDER, Standing.GUESS, Standing.UNSEEN)),
)
"""What is drawn alike: name, tone, symbol, standings. Shape and name say it, not the colour alone."""
MOST_BINS = 12
Curve = Sequence[tuple[int, int | None, int | None, str]]


def need(runs: Sequence[Run], standings: Mapping[int, Standing], kind: str, curve: Curve) -> dict[str, Any]:
    """Return peaks over workers, and what the next run would be charged at each count with its margin above."""
    counts = [point[0] for point in curve]
    needs = [point[1] for point in curve]
    above = [None if n is None else n + (margin or 0) for _, n, margin, _ in curve]
    drawn: list[traces.Trace] = []
    if counts:
        drawn += traces.band("margin kept free beside it", "soft", counts, traces.gib(needs), traces.gib(above))
        line = traces.line("the next run is charged", "ink", counts, traces.gib(needs), width=2)
        words = [f"{count} workers, {rung}" for count, _, _, rung in curve]
        drawn.append({**line, "text": words, "hovertemplate": "%{text}: %{y:.2f} GiB<extra></extra>"})
    drawn += _groups(runs, standings, lambda run: run.row.key.workers, lambda run: _peak(run, kind))
    most = max([*counts, *(run.row.key.workers for run in runs), 1])
    ticks = {"dtick": 1} if most <= 16 else {}
    axis = {"title": {"text": "workers"}, "rangemode": "tozero", "tickformat": "d", **ticks}
    return traces.figure(drawn, {"hovermode": "closest", "xaxis": axis, "yaxis": traces.amounts()})


def over_time(runs: Sequence[Run], standings: Mapping[int, Standing], kind: str, now: int | None) -> dict[str, Any]:
    """Return peaks over time below what each run was charged; ``now`` (bytes) is what the next one would be."""
    ended = sorted(runs, key=lambda run: run.row.at)
    charged = [(run.row.at, run.row.charge.get(kind)) for run in ended if run.row.charge.get(kind)]
    drawn = [
        traces.line(
            "was charged", "soft", traces.millis(at for at, _ in charged), traces.gib(n for _, n in charged),
            dash="dot", stepped=True,
        )
    ] if len(charged) > 1 else []  # fmt: skip
    drawn += _groups(runs, standings, _at, lambda run: _peak(run, kind))
    if now is not None and ended:
        both = traces.millis([ended[0].row.at, ended[-1].row.at])
        drawn.append(traces.line("the next run is charged", "ink", both, traces.gib([now, now]), width=2))
    layout = {"hovermode": "closest", "xaxis": traces.times(), "yaxis": traces.amounts()}
    return traces.figure(drawn, layout)


def durations(runs: Sequence[Run], standings: Mapping[int, Standing]) -> dict[str, Any]:
    """Return how long runs took, over time, in minutes (in seconds where all are short)."""
    longest = max((run.row.duration for run in runs), default=0.0)
    unit, divisor = ("min", 60.0) if longest >= 180 else ("s", 1.0)
    drawn = _groups(runs, standings, _at, lambda run: round(run.row.duration / divisor, 2) or None, unit)
    axis = {"rangemode": "tozero", "ticksuffix": f" {unit}"}
    return traces.figure(drawn, {"hovermode": "closest", "xaxis": traces.times(), "yaxis": axis})


def spread(runs: Sequence[Run], standings: Mapping[int, Standing], kind: str) -> dict[str, Any]:
    """Return how many counting runs used how much: bars of equal width between the least and the most."""
    peaks = sorted(
        p for run in runs if standings.get(run.id) is Standing.COUNTS and (p := run.row.peaks.get(kind)) is not None
    )
    axis: dict[str, Any] = {"rangemode": "tozero", "tickformat": "d"}
    layout = {"hovermode": "closest", "yaxis": axis, "bargap": 0.05}
    if not peaks:
        return traces.figure([], layout)
    low, high = peaks[0], peaks[-1]
    bins = 1 if low == high else min(MOST_BINS, max(2, round(len(peaks) ** 0.5) + 1))
    width = max(1, -(-(high - low + 1) // bins))
    amounts = [0] * bins
    for peak in peaks:
        amounts[min(bins - 1, (peak - low) // width)] += 1
    places = [_bin(low + width * n, low + width * (n + 1), bins) for n in range(bins)]
    if max(amounts) <= 5:
        axis["dtick"] = 1
    bars = traces.bars("runs that count", "run", places, amounts, unit="runs")
    bars["hovertemplate"] = "%{x}: %{y:d} runs<extra></extra>"
    return traces.figure([bars], {**layout, "xaxis": {"type": "category"}})


def _bin(low: int, high: int, bins: int) -> str:
    return gib(low) if bins == 1 else f"{gib(low, high)} –"


def _groups(
    runs: Sequence[Run], standings: Mapping[int, Standing], x: Callable[[Run], int],
    y: Callable[[Run], float | None], unit: str = "GiB",
) -> list[traces.Trace]:  # fmt: skip
    found = []
    for name, tone, symbol, members in GROUPS:
        of = [run for run in runs if standings.get(run.id) in members and y(run) is not None]
        if of:
            text = [_name(run) for run in of]
            found.append(
                traces.points(name, tone, [x(r) for r in of], [y(r) for r in of], symbol=symbol, text=text, unit=unit)
            )
    return found


def _name(run: Run) -> str:
    named = f"#{run.job}" if run.job is not None else "a run"
    return named if run.row.completed else f"{named}, {run.row.outcome.replace('_', ' ')}"


def _at(run: Run) -> int:
    return traces.millis([run.row.at])[0]


def _peak(run: Run, kind: str) -> float | None:
    return traces.gib([run.row.peaks.get(kind)])[0]
