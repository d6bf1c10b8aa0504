"""Fields for amounts of memory and spans of time."""

from __future__ import annotations

import re
from typing import Any

from django import forms

from calibration.domain.errors import BadAmount
from calibration.domain.resources import gib, parse_bytes
from placement.selectors.again import seconds_text

__all__ = ["Amount", "TimeLimit", "parse_seconds", "seconds_text"]

_UNITS = {"d": 86_400.0, "h": 3600.0, "min": 60.0, "m": 60.0, "s": 1.0}
_PART = re.compile(r"(\d{1,9}(?:[.,]\d{1,6})?)\s*(d|h|min|m|s)?\s*", re.ASCII)
_CLOCK = re.compile(r"(\d{1,5}):([0-5]\d)(?::([0-5]\d))?", re.ASCII)


def parse_seconds(text: str) -> float:
    """Return the seconds that "2 h", "1 h 30 min", "90" (minutes) or "1:30:00" mean. Raises ValueError."""
    shown = text.strip().lower()
    if match := _CLOCK.fullmatch(shown):
        hours, minutes, rest = (int(part or 0) for part in match.groups())
        return hours * 3600.0 + minutes * 60 + rest
    at, total = 0, 0.0
    while at < len(shown):
        match = _PART.match(shown, at)
        if match is None:
            raise ValueError(f"{text.strip()[:40]!r} is not a time. Write one such as 2 h, 90 min or 1:30:00.")
        if match[2] is None and (at or match.end() < len(shown)):
            raise ValueError(f"{text.strip()[:40]!r} lacks a unit. Write one such as 1 h 30 min.")
        total += float(match[1].replace(",", ".")) * _UNITS[match[2] or "min"]
        at = match.end()
    if not shown or total <= 0:
        raise ValueError("A time limit must be above zero; leave it empty for none.")
    return total


class Amount(forms.CharField):
    """Memory with a unit, as bytes. A text that still reads as ``stored`` does keeps the stored bytes.

    What is asked for is rounded up to a byte, a ``capacity`` down.
    """

    def __init__(self, *, stored: int | None = None, capacity: bool = False, **options: Any) -> None:
        super().__init__(max_length=40, **options)
        self.capacity = capacity
        self.stored = stored
        self.widget.attrs.setdefault("inputmode", "text")
        self.widget.attrs.setdefault("autocomplete", "off")

    def clean(self, value: Any) -> int | None:
        text = super().clean(value)
        if not text:
            return None
        if self.stored is not None and text == gib(self.stored):
            return self.stored
        try:
            return parse_bytes(text, up=not self.capacity)
        except BadAmount as error:
            raise forms.ValidationError(str(error)) from error


class TimeLimit(forms.CharField):
    """A span of time as seconds."""

    def clean(self, value: Any) -> float | None:
        text = super().clean(value)
        if not text:
            return None
        try:
            return parse_seconds(text)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error
