"""A figure as a file: one page that needs nothing else, or a table of numbers."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

from django.conf import settings

from calibration.models import Point

_TOKEN = re.compile(r"--([\w-]+):\s*(?:light-dark\(\s*)?(#[0-9a-fA-F]{3,8})")


@cache
def palette() -> dict[str, str]:
    """Return the colours of the tokens by day."""
    return dict(_TOKEN.findall((settings.REPOSITORY / "static/css/tokens.css").read_text()))


@cache
def _script() -> str:
    """Return the drawing script that pages use, fit to stand inside a page."""
    (path,) = (settings.REPOSITORY / "static/vendor").glob("plotly-basic-*.min.js")
    return str(path.read_text()).replace("</script", "<\\/script")


def page(answer: dict[str, Any], title: str, note: str) -> str:
    """Return a figure as one page that works without us: python-plotly writes it, our script and data inside it."""
    import plotly.graph_objects as go  # type: ignore[import-untyped]  # half a second, and only whoever exports needs it

    figure = go.Figure(data=[_dressed(trace) for trace in answer["data"]], layout=answer["layout"])
    figure.update_layout(
        template="plotly_white",
        hovermode="x unified",
        title={"text": html.escape(title), "subtitle": {"text": html.escape(note)}},
        font={"color": palette()["ink"]},
    )
    drawn = figure.to_html(full_html=False, include_plotlyjs=False, config={"displaylogo": False, "responsive": True})
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<script>{_script()}</script></head><body>{drawn}</body></html>"
    )


def table(owners: list[str], names: dict[str, str], points: Iterable[Point]) -> Iterator[str]:
    """Yield the lines of a CSV file: bytes, an empty field where something is unknown, a column for each owner."""
    head = ["time_utc", "unix_s", "step_s", "total", "used", "free", "booked", "kept"]
    yield _line([*head, *(names.get(owner, owner) for owner in owners)])
    for p in points:
        held = [p.owners.get(owner, 0) for owner in owners]
        yield _line([_utc(p.at), p.at, p.step, p.total, p.used, p.free, p.booked, p.kept, *held])


def _line(fields: list[Any]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow([_harmless(f) if isinstance(f, str) else f for f in fields])
    return out.getvalue()


def _harmless(text: str) -> str:
    """Return a text that no table program takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _utc(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _dressed(trace: dict[str, Any]) -> dict[str, Any]:
    """Return a trace in real colours, its name as text."""
    tone = palette()[trace["meta"]["tone"]]
    dressed = {**trace, "name": html.escape(trace["name"]), "line": {**trace["line"], "color": tone}, "meta": None}
    if trace.get("stackgroup"):
        dressed["fillcolor"] = tone + "cc"
    return dressed
