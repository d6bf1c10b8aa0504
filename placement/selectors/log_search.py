"""Search in a log of any size, a little at a time; the next question goes on where this one ended."""

from __future__ import annotations

import os
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from time import monotonic

from placement.domain.ending import first_error
from placement.selectors import logs

AT_ONCE_S = 0.4  # seconds of one answer
PLACES = 10_000  # hits whose places are kept; more are only counted
LONGEST = 200  # characters searched for
_BLOCK = 1 << 20
_ERROR_BLOCK = 128 << 10  # a block of nothing but candidates takes a quarter of a second
_KEPT = 32  # searches that are remembered
_turn = threading.Lock()  # one reads at a time: others' pages go on beside it
_kept: OrderedDict[tuple[int, int, str, bytes], _Scan] = OrderedDict()


@dataclass
class _Scan:
    """What is known of one question about one file."""

    done: int = 0  # bytes that were looked through
    next: int = 0  # where to go on: a hit may have begun before what was the end
    total: int = 0
    places: array[int] = field(default_factory=lambda: array("Q"))
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Hits:
    """``at`` is where the hit lies that is shown (None: there is none), ``number`` which one of ``total`` it is.

    ``searched`` of ``size`` bytes were looked through; where that is not all, asking again goes on.
    """

    at: int | None
    number: int
    total: int
    searched: int
    size: int
    kind: str = ""

    @property
    def whole(self) -> bool:
        """Return whether all of the log was looked through."""
        return self.searched >= self.size

    @property
    def percent(self) -> int:
        """Return how much of the log was looked through."""
        return int(100 * self.searched / self.size) if self.size else 100


def find(run_dir: str, stream: str, words: str, at: int | None = None, to: str = "next") -> Hits | None:
    """Return the hit after (or, for "previous", before) the one at ``at``, round the end; None where there is no log.

    ASCII letters are found in either case.
    """
    needle = words[:LONGEST].encode("utf-8", "replace").lower()
    with logs.opened(run_dir, stream) as descriptor:
        if descriptor is None:
            return None
        size = os.fstat(descriptor).st_size
        if not needle:
            return Hits(None, 0, 0, size, size)
        scan = _scan(descriptor, size, "words", needle)
    places = scan.places
    if not places:
        return Hits(None, 0, scan.total, scan.done, size)
    if at is None:
        index = 0
    elif to == "previous":
        index = (bisect_left(places, at) - 1) % len(places)
    elif to == "same":
        index = min(bisect_left(places, at), len(places) - 1)
    else:
        index = bisect_right(places, at) % len(places)
    return Hits(places[index], index + 1, scan.total, scan.done, size)


def first_of_errors(run_dir: str, stream: str) -> Hits | None:
    """Return where the log first tells of an error."""
    with logs.opened(run_dir, stream) as descriptor:
        if descriptor is None:
            return None
        size = os.fstat(descriptor).st_size
        scan = _scan(descriptor, size, "error", b"")
    at = scan.places[0] if scan.places else None
    return Hits(at, scan.total, scan.total, scan.done, size, scan.kind)


def forget() -> None:
    """Forget what was found."""
    _kept.clear()


def _scan(descriptor: int, size: int, what: str, needle: bytes) -> _Scan:
    """Look on for a while, and return what is known then."""
    status = os.fstat(descriptor)
    key = (status.st_dev, status.st_ino, what, needle)
    with _turn:
        scan = _kept.get(key)
        if scan is None or scan.done > size:
            scan = _Scan()
        _kept[key] = scan
        _kept.move_to_end(key)
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
        deadline = monotonic() + AT_ONCE_S
        step = _words if what == "words" else _error
        while scan.done < size and monotonic() < deadline:
            scan.done = step(descriptor, size, scan, needle)
        return _Scan(scan.done, scan.next, scan.total, scan.places[:], scan.kind)


def _words(descriptor: int, size: int, scan: _Scan, needle: bytes) -> int:
    """Look through one block, and return up to where the log is known then; a hit that begins in it lies in it."""
    reach = len(needle) - 1
    block = os.pread(descriptor, min(_BLOCK + reach, size - scan.next), scan.next).lower()
    at, behind = block.find(needle), 0
    while at >= 0 and len(scan.places) < PLACES:
        scan.places.append(scan.next + at)
        scan.total += 1
        behind = at + len(needle)
        at = block.find(needle, behind)
    if at >= 0:
        scan.total += block.count(needle, at)
        behind = block.rfind(needle) + len(needle)
    over = not block or scan.next + len(block) >= size
    scan.next += max(behind, max(0, len(block) - reach))
    return size if over else scan.next


def _error(descriptor: int, size: int, scan: _Scan, needle: bytes) -> int:
    """Look through one block of whole lines; the last one counts as far as it is there, and is looked at again."""
    block = os.pread(descriptor, min(_ERROR_BLOCK, size - scan.next), scan.next)
    found = None if scan.places else first_error.first(block)
    if found is not None:
        scan.places.append(scan.next + found.at)
        scan.total, scan.kind = 1, found.kind
    over = scan.total > 0 or not block or scan.next + len(block) >= size
    scan.next += block.rfind(b"\n") + 1 or len(block)
    return size if over else scan.next
