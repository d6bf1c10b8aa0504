"""Is a chart's answer a figure that Plotly takes, in colours that exist?"""

from __future__ import annotations

import json
import re
from typing import Any

import plotly.graph_objects as go
from django.conf import settings

_LAYOUT = {"xaxis", "yaxis", "shapes", "annotations", "barmode", "hovermode", "margin", "bargap", "uirevision"}


def tokens() -> set[str]:
    """Return the names that the stylesheet of tokens defines."""
    return set(re.findall(r"--([\w-]+)\s*:", (settings.REPOSITORY / "static/css/tokens.css").read_text()))


def check(answer: dict[str, Any]) -> go.Figure:
    """Return the figure that a URL's answer makes; fail where Plotly refuses it or a tone is no token."""
    answer = json.loads(json.dumps(answer))  # as it arrives
    figure = go.Figure(data=answer["data"], layout=answer.get("layout") or {})
    known = tokens()
    for trace in answer["data"]:
        tones = [trace["meta"]["tone"], *trace["meta"].get("tones", [])]
        assert set(tones) <= known, tones
        assert len(trace["x"]) == len(trace["y"]), trace["name"]
        assert "color" not in json.dumps(trace), "colours belong to the stylesheet"
    layout = answer.get("layout") or {}
    assert set(layout) <= _LAYOUT, set(layout) - _LAYOUT
    for part in [*layout.get("shapes", []), *layout.get("annotations", [])]:
        assert part.get("name", "soft") in known, part
    return figure
