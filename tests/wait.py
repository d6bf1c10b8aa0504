"""Waiting for a condition instead of for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LEAST = 30.0  # seconds


def until(predicate: Callable[[], T], timeout: float, what: str, interval: float = 0.02) -> T:
    """Return the first true value of the predicate; after `timeout` seconds, `LEAST` or more, say what never came.

    The timeout is for what never comes, on a machine with much else to do: a promise about time is measured beside it.
    """
    timeout = max(timeout, LEAST)
    deadline = time.monotonic() + timeout
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s for {what}; last answer: {value!r}")
        time.sleep(interval)
