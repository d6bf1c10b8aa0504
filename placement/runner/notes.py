"""What the runner says about itself, in control/runner.log."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

_QUIET_S = 60.0


class Notes:
    """Writes one line for each kind of trouble, and the same kind again after a minute at the earliest."""

    def __init__(self, descriptor: int = 2, clock: Callable[[], float] = time.monotonic) -> None:
        self._descriptor = descriptor
        self._clock = clock
        self._said: dict[str, float] = {}

    def say(self, kind: str, text: str) -> bool:
        """Write the line; False where this kind was said within the last minute. A full disk is borne."""
        now = self._clock()
        if kind in self._said and now - self._said[kind] < _QUIET_S:
            return False
        self._said[kind] = now
        line = f"{int(time.time())} {text}\n".encode("utf-8", "replace")
        try:
            os.write(self._descriptor, line)
        except OSError:
            return True
        return True
