"""Traces and axes of charts as plain dicts. Colours are names of tokens; the browser knows what they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from calibration.domain.resources import GIB

TONES = frozenset(f"o{n}" for n in range(1, 9)) | {
    "res", "ext", "unk", "drv", "self", "kept", "run", "ok", "wait", "stop", "ink", "soft", "faint",
}  # fmt: skip
Trace = dict[str, Any]


def figure(data: Sequence[Trace], layout: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return what a chart's URL answers; ``more`` is for the script that asked (``version``: 204 while it stands)."""
    return {"data": list(data), "layout": layout or {}, **more}


def line(
    name: str, tone: str, x: Sequence[Any], y: Sequence[float | None], *, dash: str = "solid", width: float = 1.5,
    stepped: bool = False, unit: str = "GiB", **meta: Any,
) -> Trace:  # fmt: skip
    """Return a line; ``stepped`` keeps each value until the next. ``meta``: key, href, legend, alpha."""
    shape = {"shape": "hv"} if stepped else {}
    return {
        **_named(name, tone, x, y, unit, meta),
        "type": "scatter",
        "mode": "lines",
        "line": {"width": width, "dash": dash, **shape},
    }


def area(
    name: str, tone: str, x: Sequence[Any], y: Sequence[float | None], *, stack: str = "all", unit: str = "GiB",
    **meta: Any,
) -> Trace:  # fmt: skip
    """Return an area that stands on those before it of the same stack; a gap stays a gap."""
    return {
        **_named(name, tone, x, y, unit, meta),
        "type": "scatter",
        "mode": "lines",
        "stackgroup": stack,
        "line": {"width": 0.5},
    }


def band(
    name: str, tone: str, x: Sequence[Any], low: Sequence[float | None], high: Sequence[float | None], *,
    unit: str = "GiB", **meta: Any,
) -> list[Trace]:  # fmt: skip
    """Return two traces with what lies between them filled: put them before what is drawn over them."""
    lower = line(name, tone, x, low, width=0, unit=unit, **{**meta, "legend": False})
    upper = line(name, tone, x, high, width=0, unit=unit, **meta)
    return [{**lower, "hoverinfo": "skip"} | {"hovertemplate": None}, {**upper, "fill": "tonexty"}]


def points(
    name: str, tone: str, x: Sequence[Any], y: Sequence[float | None], *, symbol: str = "circle", size: float = 7,
    text: Sequence[str] | None = None, unit: str = "GiB", **meta: Any,
) -> Trace:  # fmt: skip
    """Return single points; ``text``, one per point, is shown on hover."""
    trace = {
        **_named(name, tone, x, y, unit, meta),
        "type": "scatter",
        "mode": "markers",
        "marker": {"symbol": symbol, "size": size},
    }
    if text is not None:
        trace |= {"text": list(text), "hovertemplate": f"%{{text}}: %{{y:.2f}} {unit}".rstrip() + "<extra></extra>"}
    return trace


def bars(
    name: str, tone: str, places: Sequence[Any], amounts: Sequence[float | None], *, across: bool = False,
    tones: Sequence[str] | None = None, unit: str = "GiB", **meta: Any,
) -> Trace:  # fmt: skip
    """Return bars: upright, or ``across`` the page with their names at the left. ``tones``: one for each bar."""
    more = {"tones": list(tones)} if tones is not None else {}
    x, y = (amounts, places) if across else (places, amounts)
    trace = {**_named(name, tone, x, y, unit, {**meta, **more}), "type": "bar"}
    return {**trace, "orientation": "h", "hovertemplate": f"%{{x:.2f}} {unit}".rstrip()} if across else trace


def level(tone: str, y: float, text: str) -> dict[str, Any]:
    """Return a layout with a horizontal line over the whole width, named at its right end."""
    return {
        "shapes": [
            {"type": "line", "name": tone, "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": {"dash": "dot"}}
        ],
        "annotations": [
            {"name": tone, "xref": "paper", "x": 1, "xanchor": "right", "y": y, "yanchor": "bottom", "text": text}
        ],
    }


def times(**more: Any) -> dict[str, Any]:
    """Return a time axis: its values are those of ``millis``, shown in the reader's own zone."""
    return {"type": "date", **more}


def amounts(**more: Any) -> dict[str, Any]:
    """Return an axis of GiB that begins at zero."""
    return {"rangemode": "tozero", "ticksuffix": " GiB", **more}


def millis(seconds: Iterable[float]) -> list[int]:
    """Return unix seconds as a time axis takes them: milliseconds, in UTC."""
    return [int(second * 1000) for second in seconds]


def gib(sizes: Iterable[int | None]) -> list[float | None]:
    """Return bytes as GiB, unknown ones as gaps."""
    return [None if size is None else round(size / GIB, 4) for size in sizes]


def _named(name: str, tone: str, x: Sequence[Any], y: Sequence[Any], unit: str, meta: dict[str, Any]) -> dict[str, Any]:
    """Return what all traces have. A tone that is no token is a mistake of ours, found where it is made."""
    if tone not in TONES:
        raise ValueError(f"{tone} is no tone; there are {', '.join(sorted(TONES))}.")
    return {
        "name": name,
        "meta": {"tone": tone, **meta},
        "x": list(x),
        "y": list(y),
        "hovertemplate": f"%{{y:.2f}} {unit}".rstrip(),
    }
