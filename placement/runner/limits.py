"""The limits that the runner keeps itself: wall-clock time, and the size of each log."""

from __future__ import annotations

import os
from collections.abc import Callable

from placement.runner.kernel import punch_hole

# Holes are cut on this grid; a file system frees whole blocks only.
_BLOCK = 4096
NOTICE = b"\n[tidegate: the log passed its limit; the middle is cut out here, its ends are kept]\n"
CUT_NOTICE = b"\n[tidegate: the log passed its limit and was cut here; later output follows]\n"


class TimeLimit:
    """A wall-clock limit in seconds on the monotonic clock; None never passes."""

    def __init__(self, limit_s: float | None, began: float) -> None:
        self._deadline = None if limit_s is None else began + limit_s

    def left(self, now: float) -> float | None:
        """Return the seconds that are left, never below 0; None without a limit."""
        return None if self._deadline is None else max(0.0, self._deadline - now)


class LogLimit:
    """Keeps one log under a size in bytes: a quarter as its head, half as its tail, the middle freed.

    The job appends to the file itself, so its size only grows and reads as zeros in the hole. Where the file
    system frees no middle, the file is cut after its head. A log that cannot be trimmed is no reason to stop
    the job: the next look tries again. `writer` is a descriptor without O_APPEND.
    """

    def __init__(self, writer: int, limit_bytes: int, punch: Callable[[int, int, int], None] = punch_hole) -> None:
        self._writer = writer
        self._limit = limit_bytes
        self._head = max(_BLOCK, _down(limit_bytes // 4))
        self._hole_end = self._head
        self._noticed = False
        self._punch: Callable[[int, int, int], None] | None = punch
        self._last_size = 0
        self.trimmed_bytes = 0
        self.growing_fast = False

    def size(self) -> int | None:
        """Return the file's length in bytes, holes counted; None where it cannot be read."""
        try:
            return os.fstat(self._writer).st_size
        except OSError:
            return None

    def look(self) -> None:
        """Trim the log if it keeps more than its limit."""
        size = self.size()
        if size is None or self._limit <= 0:
            return
        self.growing_fast = size - self._last_size > self._limit // 8
        self._last_size = size
        if size < self._hole_end:
            # Somebody emptied the file; what follows is a new log.
            self._hole_end, self._noticed = self._head, False
        if size - (self._hole_end - self._head) <= max(self._limit, 4 * _BLOCK):
            return
        try:
            self._trim(size)
        except OSError:
            return

    def _trim(self, size: int) -> None:
        end = _down(size - self._limit // 2)
        if self._punch is not None and end > self._hole_end:
            try:
                self._punch(self._writer, self._hole_end, end - self._hole_end)
            except OSError:
                self._punch = None
            else:
                self.trimmed_bytes += end - self._hole_end
                self._hole_end = end
                if not self._noticed:
                    os.pwrite(self._writer, NOTICE, self._head)
                    self._noticed = True
        if self._punch is None:
            self._cut(size)

    def _cut(self, size: int) -> None:
        os.ftruncate(self._writer, self._head)
        os.pwrite(self._writer, CUT_NOTICE, self._head)
        self.trimmed_bytes += size - self._head
        self._hole_end = self._head


def _down(count: int) -> int:
    return count - count % _BLOCK
