"""What many viewers poll each second is read once for all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")

FRESH_FOR = 0.4  # seconds; polls come each second


class Shared(Generic[T]):
    """The newest value per kind of viewer, built by whoever first finds it too old while the others wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Hashable, tuple[float, T]] = {}

    def get(self, kind: Hashable, build: Callable[[], T]) -> T:
        """Return a value for this kind of viewer that is at most FRESH_FOR seconds old."""
        with self._lock:
            kept = self._kept.get(kind)
            if kept is None or not 0 <= time.monotonic() - kept[0] < FRESH_FOR:
                kept = self._kept[kind] = (time.monotonic(), build())
            return kept[1]
