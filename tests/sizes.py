"""Fail when a module is longer than 300 lines: that is the point where it has two subjects."""

from __future__ import annotations

import sys
from pathlib import Path

LIMIT = 300
REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = ("scheduler_site", "placement", "calibration")
VAGUE = {"utils", "helpers", "common", "manager", "base"}


def complaints() -> list[str]:
    """Return one sentence for each module that is too long or whose name says nothing."""
    found = []
    for package in PACKAGES:
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            lines = len(path.read_text().splitlines())
            if lines > LIMIT and "migrations" not in path.parts:
                found.append(f"{path.relative_to(REPOSITORY)} has {lines} lines; {LIMIT} is the limit")
            if path.stem in VAGUE:
                found.append(f"{path.relative_to(REPOSITORY)} has a name that does not say what it is about")
    return found


if __name__ == "__main__":
    print("\n".join(complaints()), end="\n" if complaints() else "")
    sys.exit(bool(complaints()))
