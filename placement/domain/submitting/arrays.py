"""Arrays: one submission, many jobs that differ by their index alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

MOST_MEMBERS = 10_000
LOOKED_AT = 100
"""So many waiting members of one array (or as many as may run at once, if more) go before the gate in one cycle.

They are alike and come in order: when the first of them do not fit, the others do not either.
"""
_INDEX = re.compile(r"(?<!\$)\{index\}")  # ${index} is the shell's own


def with_index(command: str, index: int) -> str:
    """Return a command with each ``{index}`` replaced; the shell's ``${index}`` stays."""
    return _INDEX.sub(str(index), command)


def list_with_index(argv: Sequence[str], index: int) -> list[str]:
    """Return an argument list with each ``{index}`` replaced."""
    return [with_index(part, index) for part in argv]


def looked_at(limit: int | None) -> int:
    """Return how many waiting members of an array with this limit go before the gate."""
    return max(LOOKED_AT, limit or 0)
