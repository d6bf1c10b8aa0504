"""Amounts of memory: bytes as ints, the texts people type, and the texts they read."""

from __future__ import annotations

import decimal
import re
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from .errors import BadAmount, BadDeviceSpec

KIB = 2**10
MIB = 2**20
GIB = 2**30
GB = 10**9
MOST = 2**60
"""Larger amounts are refused: no machine has them, so they are slips."""

_UNITS = {
    "": MIB,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": GB,
    "tb": 10**12,
    "kib": KIB,
    "mib": MIB,
    "gib": GIB,
    "tib": 2**40,
}
_AMOUNT = re.compile(r"([+-]?[0-9]*[.,]?[0-9]*(?:e[+-]?[0-9]{1,4})?)\s*([a-z]*)", re.IGNORECASE)
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2},[0-9]{3}")
_LONGEST_TEXT = 40
_MOST_DEVICES = 64
# Enough digits for any text of that length times a unit, whatever context the caller has set.
_EXACT = decimal.Context(prec=80, rounding=decimal.ROUND_HALF_EVEN)


def total(amounts: Iterable[int | None]) -> int | None:
    """Return the sum in bytes, None as soon as one part is unknown."""
    parts = list(amounts)
    return None if None in parts else known(parts)


def known(amounts: Iterable[int | None]) -> int:
    """Return the sum of the known parts alone; show it as a partial sum, never as the total."""
    return sum(amount for amount in amounts if amount is not None)


def times(amount: int, factor: float) -> int:
    """Return ``amount`` times the decimal ``factor``, rounded up to a byte, without float error."""
    product = amount * Fraction(str(factor))
    return -(-product.numerator // product.denominator)


def parse_bytes(text: object, *, up: bool = True) -> int:
    """Return the bytes that a typed amount means, rounded up (a capacity: down); a bare number is MiB.

    Units are B, KB, MB, GB, TB (decimal) and KiB, MiB, GiB, TiB (binary), in any case. A comma is a decimal
    comma; where it could as well group thousands (``1,500``) the text is refused. 0 is an amount.
    Raises BadAmount.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise BadAmount(f"{type(text).__name__} is not an amount of memory. Write one such as 24 GiB.")
    shown = str(text).strip()
    if not shown:
        raise BadAmount("The amount is empty. Write one such as 24 GiB.")
    match = _AMOUNT.fullmatch(shown) if len(shown) <= _LONGEST_TEXT else None
    if match is None:
        raise BadAmount(f"{_clip(shown)!r} is not an amount of memory. Write one such as 24 GiB or 1.5 GB.")
    digits, unit = match[1], match[2].lower()
    if unit not in _UNITS:
        raise BadAmount(f"{match[2]!r} is not a unit. Use B, KB, MB, GB, TB, KiB, MiB, GiB or TiB.")
    if _THOUSANDS.fullmatch(digits):
        raise BadAmount(
            f"{digits!r} can be read in two ways. Write {digits.replace(',', '')} or {digits.replace(',', '.')}."
        )
    return _bytes(digits.replace(",", "."), _UNITS[unit], shown, up=up)


def from_gb_request(gb: float | Decimal) -> int:
    """Return a requested amount in decimal gigabytes as bytes, rounded up. Raises BadAmount."""
    return _bytes(str(gb), GB, f"{gb} GB", up=True)


def from_gb_capacity(gb: float | Decimal) -> int:
    """Return a capacity in decimal gigabytes as bytes, rounded down. Raises BadAmount."""
    return _bytes(str(gb), GB, f"{gb} GB", up=False)


def gib(amount: int | None, against: int | None = None) -> str:
    """Return the amount as people read it: ``8.2 GiB``, ``512 MiB``, ``unknown``.

    Where it would print like ``against`` but differs, digits are added to both until they differ.
    """
    if amount is None:
        return "unknown"
    if against is None or against == amount:
        return _show(amount, 1)
    for digits in (1, 2, 3):
        if _show(amount, digits) != _show(against, digits):
            return _show(amount, digits)
    return f"{amount:,} B"


def workers_of(count: int) -> str:
    """Return "1 worker", "3 workers"."""
    return "1 worker" if count == 1 else f"{count} workers"


def parse_device_spec(text: str) -> tuple[int, ...]:
    """Return one size in bytes per device of ``2x24GiB,1x80GiB``. Raises BadDeviceSpec, BadAmount."""
    sizes: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(?:([0-9]{1,3})\s*x)?\s*(\S.*?)\s*", part, re.IGNORECASE)
        if match is None:
            raise BadDeviceSpec(f"{_clip(text)!r} names no device between two commas. Write 2x24GiB,1x80GiB.")
        count = int(match[1] or 1)
        size = parse_bytes(match[2])
        if count == 0 or size == 0:
            raise BadDeviceSpec(f"{part.strip()!r} is no device: count and size must be above zero.")
        sizes += [size] * count
    if len(sizes) > _MOST_DEVICES:
        raise BadDeviceSpec(f"{len(sizes)} devices are too many: {_MOST_DEVICES} at most.")
    return tuple(sizes)


def _bytes(digits: str, unit: int, shown: str, *, up: bool) -> int:
    try:
        number = Decimal(digits)
    except decimal.InvalidOperation:
        raise BadAmount(f"{_clip(shown)!r} has no number that can be read. Write one such as 24 GiB.") from None
    if not number.is_finite():
        raise BadAmount(f"{_clip(shown)!r} is not a finite number. Write one such as 24 GiB.")
    if number < 0:
        raise BadAmount(f"{_clip(shown)!r} is below zero. An amount of memory is 0 or more.")
    if number > MOST or _EXACT.multiply(number, Decimal(unit)) > MOST:
        raise BadAmount(f"{_clip(shown)!r} is more than any machine has ({MOST // 2**40:,} TiB is the most).")
    rounding = decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR
    return int(_EXACT.multiply(number, Decimal(unit)).to_integral_value(rounding))


@lru_cache(maxsize=4096)  # sentences about many places name the same few amounts
def _show(amount: int, digits: int) -> str:
    size = abs(amount)
    if round(size / MIB, digits - 1) >= 1024:
        return f"{amount / GIB:.{digits}f} GiB"
    if round(size / KIB, digits - 1) >= 1024 or size == 0:
        return f"{amount / MIB:.{digits - 1}f} MiB"
    return f"{amount / KIB:.{digits - 1}f} KiB" if size >= KIB else f"{amount} B"


def _clip(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
