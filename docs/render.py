"""Write what documents take from the code: `python docs/render.py`. Tests hold the pages to it.

docs/knobs.md is all of it; in docs/api.md the table of operations is, which `python docs/render.py api` writes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from calibration.domain.knobs import KNOBS
from placement.domain.knobs import TABLE

PAGE = Path(__file__).with_name("knobs.md")
HEAD = """# Knobs

Every figure that may be turned. Sizes are in MiB, times in seconds, shares parts of one. The page *Knobs* sets one, or
`./tidegate manage knob NAME VALUE`; `knob NAME default` puts it back. It holds from the next decision on and stands in
the audit.

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


API = Path(__file__).with_name("api.md")
TABLE_OF = "## Every operation\n"


def api_page() -> str:
    """Return the guide to the API with its table as the API's description has it. Needs Django's settings."""
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_site.settings")
    import django

    django.setup()
    from placement.api.service import schema

    parts = []
    for tag in schema()["tags"]:
        lines = [
            f"| `{method.upper()} {path.removeprefix('/api/v1/')}` | {one['summary']} | {one['x-role']} |"
            for path, methods in schema()["paths"].items()
            for method, one in methods.items()
            if one["tags"] == [tag["name"]]
        ]
        parts.append("\n".join([f"### {tag['name']}", "", "| operation | | for |", "|---|---|---|", *lines]))
    return API.read_text().partition(TABLE_OF)[0] + TABLE_OF + "\n" + "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["api"]:
        API.write_text(api_page())
    else:
        PAGE.write_text(knobs_page())
