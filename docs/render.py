"""Write docs/knobs.md from the tables of knobs: `python docs/render.py`. A test holds the page to the code."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from calibration.domain.knobs import KNOBS
from placement.domain.knobs import TABLE

PAGE = Path(__file__).with_name("knobs.md")
HEAD = """# Knobs

Every figure that may be turned. Sizes are in MiB, times in seconds, shares parts of one. `./tidegate manage
knob NAME VALUE` sets one, `knob NAME default` puts it back; it holds from the next decision on and stands in the audit.

"""


def knobs_page() -> str:
    """Return the whole page."""
    return HEAD + _table("The gate and the loop", TABLE) + "\n" + _table("The instrument", KNOBS)


def _table(title: str, knobs: Iterable[object]) -> str:
    lines = [f"## {title}", "", "| knob | default | unit | what it does |", "|---|---|---|---|"]
    for knob in knobs:
        name, default, unit, text = (str(getattr(knob, field)) for field in ("name", "default", "unit", "help"))
        lines.append(f"| `{name}` | {default} | {unit} | {text.rstrip('.')} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(knobs_page())
