"""Stretches of a log in whole lines, with their numbers where those are cheap to know."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from time import monotonic

from placement.selectors import logs

BEFORE = 6 * 1024  # bytes shown before a place that was jumped to
COUNTED = 512 << 20  # bytes up to which lines are numbered
COUNTING_S = 0.2  # seconds that one answer may spend on it; the next goes on
_STEP = 4 << 20  # bytes between two marks
_KEPT = 64  # logs whose marks are kept
_lock = threading.Lock()
_marks: OrderedDict[tuple[int, int], list[int]] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines of a log with their places. ``start`` and ``end`` are byte offsets, ``size`` the file's.

    ``number`` is the first line's, from 1; None where counting would take too long. ``open`` says that the last line
    has no end yet: it is the only one that may still change. No character is cut.
    """

    lines: tuple[tuple[int, bytes], ...]
    start: int
    end: int
    size: int
    version: str
    number: int | None
    open: bool


def tail(run_dir: str, stream: str) -> Stretch | None:
    """Return the last lines, None where there is no log."""
    with logs.opened(run_dir, stream) as descriptor:
        if descriptor is None:
            return None
        size = os.fstat(descriptor).st_size
        return _stretch(descriptor, max(0, size - logs.CHUNK), size, from_start=size <= logs.CHUNK)


def more(run_dir: str, stream: str, start: int) -> Stretch | None:
    """Return what came since the line that began at ``start``; None where it is too much, or the log another one."""
    with logs.opened(run_dir, stream) as descriptor:
        if descriptor is None:
            return None
        size = os.fstat(descriptor).st_size
        if start > size:
            return None
        if size - start <= logs.CHUNK:
            return _stretch(descriptor, start, size, from_start=True)
        found = _stretch(descriptor, size - logs.CHUNK, size, from_start=False)
        return found if len(found.lines) == 1 and found.open else None  # one long line that is written over


def earlier(run_dir: str, stream: str, before: int) -> Stretch | None:
    """Return the lines that end where ``before`` begins."""
    with logs.opened(run_dir, stream) as descriptor:
        if descriptor is None:
            return None
        before = min(before, os.fstat(descriptor).st_size)
        start = max(0, before - logs.CHUNK)
        return _stretch(descriptor, start, before, from_start=start == 0)


def around(run_dir: str, stream: str, at: int) -> Stretch | None:
    """Return the lines from a little before a place."""
    with logs.opened(run_dir, stream) as descriptor:
        if descriptor is None:
            return None
        size = os.fstat(descriptor).st_size
        at = min(at, size)
        start = max(0, at - BEFORE)
        before = os.pread(descriptor, at - start, start)
        if start:
            cut = before.find(b"\n")
            start = start + cut + 1 if cut >= 0 else max(0, at - 1024)
        return _stretch(descriptor, start, min(size, start + logs.CHUNK), from_start=True)


def later(run_dir: str, stream: str, after: int) -> Stretch | None:
    """Return the lines from ``after`` on."""
    with logs.opened(run_dir, stream) as descriptor:
        if descriptor is None:
            return None
        after = min(after, os.fstat(descriptor).st_size)
        return _stretch(descriptor, after, after + logs.CHUNK, from_start=True)


def line_at(run_dir: str, stream: str, number: int) -> int | None:
    """Return where a line begins; the end of the log where it has fewer, None where it is too large to count."""
    with logs.opened(run_dir, stream) as descriptor:
        if descriptor is None:
            return None
        size = os.fstat(descriptor).st_size
        if number <= 1:
            return 0
        if _before(descriptor, size) is None:
            return None
        marks = _marks_of(descriptor, size)
        block = max((i for i, count in enumerate(marks) if count < number), default=0)
        at, seen = block * _STEP, marks[block]
        while at < size:
            raw = os.pread(descriptor, logs.BLOCK, at)
            if not raw:
                break
            count = raw.count(b"\n")
            if seen + count >= number - 1:
                place = -1
                for _ in range(number - 1 - seen):
                    place = raw.find(b"\n", place + 1)
                return at + place + 1
            seen, at = seen + count, at + len(raw)
        return size


def _stretch(descriptor: int, start: int, end: int, *, from_start: bool) -> Stretch:
    """Read a stretch; what it begins in the middle of is left out, unless that is all there is of it."""
    status = os.fstat(descriptor)
    raw = os.pread(descriptor, max(0, end - start), start)
    if not from_start:
        cut = raw.find(b"\n")
        if 0 <= cut < len(raw) - 1:
            raw, start = raw[cut + 1 :], start + cut + 1
    begun = start > 0 and os.pread(descriptor, 1, start - 1) != b"\n"
    skipped = _continued(raw) if begun else 0
    raw, start = raw[skipped:], start + skipped
    end = start + len(raw)
    ended = raw.endswith(b"\n")
    if not ended and end < status.st_size and b"\n" in raw:  # a jump shows whole lines, too
        raw = raw[: raw.rfind(b"\n") + 1]
        end, ended = start + len(raw), True
    elif not ended and end < status.st_size:
        raw = raw[: len(raw) - _unfinished(raw)]
        end = start + len(raw)
    lines: list[tuple[int, bytes]] = []
    at = start
    for line in raw.removesuffix(b"\n").split(b"\n") if raw else ():
        lines.append((at, line))
        at += len(line) + 1
    before = _before(descriptor, start)
    version = logs.version_of(status)
    number = None if before is None else before + 1
    return Stretch(tuple(lines), start, end, status.st_size, version, number, bool(raw) and not ended)


def _continued(raw: bytes) -> int:
    """Return how many bytes at the start belong to a character that began before."""
    skipped = 0
    while skipped < min(3, len(raw)) and raw[skipped] & 0xC0 == 0x80:
        skipped += 1
    return skipped


def _unfinished(raw: bytes) -> int:
    """Return how many bytes at the end begin a character that goes on after them."""
    for back in range(1, min(3, len(raw)) + 1):
        byte = raw[-back]
        if byte & 0xC0 != 0x80:
            return back if byte >= 0xC0 and back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else 0
    return 0


def _before(descriptor: int, offset: int) -> int | None:
    """Return how many line ends lie before an offset, None where that is not known soon."""
    if offset > COUNTED:
        return None
    marks = _marks_of(descriptor, offset)
    at = (len(marks) - 1) * _STEP
    if offset - at > _STEP:
        return None
    block = offset // _STEP
    return marks[block] + os.pread(descriptor, offset - block * _STEP, block * _STEP).count(b"\n")


def _marks_of(descriptor: int, offset: int) -> list[int]:
    """Return the count of line ends before each step of the file, as far as the time allows."""
    status = os.fstat(descriptor)
    key = (status.st_dev, status.st_ino)
    deadline = monotonic() + COUNTING_S
    with _lock:
        marks = _marks.get(key, [0])
        if (len(marks) - 1) * _STEP > status.st_size:  # it was cut: another log by the same number
            marks = [0]
        _marks[key] = marks
        _marks.move_to_end(key)
        while len(_marks) > _KEPT:
            _marks.popitem(last=False)
        while len(marks) * _STEP <= offset and monotonic() < deadline:
            raw = os.pread(descriptor, _STEP, (len(marks) - 1) * _STEP)
            marks.append(marks[-1] + raw.count(b"\n"))
        return list(marks)
