"""When a decision is worth a row of its own: something that a person would call a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from placement.domain.admission.decision import Verdict
from placement.domain.knobs import MIB, Knobs

SIZES = frozenset({"need", "room", "free", "growth", "leased", "kept", "external", "left", "at_most", "declared"})
"""Figures in bytes that are compared; ages move all the time and are not news."""


def worth_writing(
    previous: Mapping[str, Any] | None,
    decision: Mapping[str, Any],
    since_last: float,
    knobs: Knobs | None = None,
) -> bool:
    """Return whether a decision differs enough from the one before, and not too soon after the last one written.

    Both as wire.decision_json gives them, ``previous`` empty or None when there was none; ``since_last`` in
    seconds. A start is always written: it is the last one, and the one that people look for.
    """
    turned = knobs or Knobs()
    if not previous:
        return True
    if decision["verdict"] == Verdict.START.value:
        return True
    if 0 <= since_last < turned.history_seconds:
        return False
    if _outline(previous) != _outline(decision):
        return True
    before = dict(_figures(previous))
    return any(
        abs(value - before[name]) > max(turned.history_share * abs(before[name]), turned.history_mib * MIB)
        for name, value in _figures(decision)
        if name in before
    )


def _against(decision: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the objections to the whole and to the leading place."""
    checks = [*decision["whole"], *(c for one in decision["candidates"][:1] for c in one["checks"])]
    return [check for check in checks if not check["ok"]]


def _outline(decision: Mapping[str, Any]) -> tuple[object, ...]:
    leading = [(one["node"], one["device"], one.get("devices")) for one in decision["candidates"][:1]]
    return decision["verdict"], sorted({check["code"] for check in _against(decision)}), leading


def _figures(decision: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, str], int]]:
    for check in _against(decision):
        for name, value in check["figures"].items():
            if name in SIZES and isinstance(value, int):
                yield (check["code"], check["pool"], name), value
