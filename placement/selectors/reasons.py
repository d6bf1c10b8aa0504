"""Every reason for which a job can wait: what the gate asks and what ends the wait, read from its document."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from django.conf import settings

from placement.domain.admission.decision import Code
from placement.selectors import wording

_ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason, in the gate's order."""

    code: str
    words: str
    asks: str
    ends: str


@lru_cache(maxsize=1)
def reasons() -> tuple[Reason, ...]:
    """Return all reasons in the order in which the gate asks; docs/reasons.md is the one place that explains them."""
    told = (settings.REPOSITORY / "docs/reasons.md").read_text()
    known = {code: (asks, ends) for code, asks, ends in _ROW.findall(told)}
    found = []
    for code in Code:
        asks, ends = known.get(code.value, ("", ""))
        found.append(Reason(code.value, wording.CODES.get(code.value, code.value), _plain(asks), _plain(ends)))
    return tuple(found)


def _plain(text: str) -> str:
    return text.replace("`", "").replace("*", "")
