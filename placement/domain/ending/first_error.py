"""Where a log first speaks of an error: few patterns that programs really print, none that plain figures match."""

from __future__ import annotations

import re
from dataclasses import dataclass

LINE_LIMIT = 4 << 10  # bytes of one line that are looked at
_HINTS = (b"error", b"traceback", b"exception", b"killed", b"fatal", b"panic", b"out of memory", b"segmentation",
          b"critical", b"not found", b"no such file", b"abort", b"core dumped", b"oom-kill")  # fmt: skip

# The first that matches a line names it. A line that names errors in order to count them is none (see _COUNTS).
_KINDS: tuple[tuple[str, re.Pattern[bytes]], ...] = (
    ("out of device memory", re.compile(rb"cuda out of memory|cuda error: out of memory|hip out of memory", re.I)),
    ("out of memory", re.compile(rb"\bOutOfMemoryError\b|\bMemoryError\b|\bout of memory\b|oom-kill", re.I)),
    ("Python traceback", re.compile(rb"^\s*(?:[|+\s\-]*)Traceback \(most recent call last\):")),
    ("killed", re.compile(rb"^(?:.{0,80}: )?(?:line \d+:\s+\d+ )?Killed\b", re.M)),
    ("crash", re.compile(rb"\bSegmentation fault\b|\bcore dumped\b|\bAborted\b|^panic: |thread '[^']{0,80}' panicked")),
    ("fatal error", re.compile(rb"(?:^|[\s\[:(])fatal(?: error)?\s?[:\])]|(?:^|[\s\[:|])FATAL(?:[\s\]:|]|$)", re.I)),
    ("error", re.compile(rb"^(?:[\w.]{1,80}\.)?[A-Z]\w{0,60}(?:Error|Exception)(?::|\s*$)")),
    ("error", re.compile(rb"(?:^|[\s\[:|(>])(?:ERROR|CRITICAL|E\d{4})(?:[\s\]:|)]|$)")),
    ("error", re.compile(rb"(?:^|[\s\])])(?:\w{1,40} )?error(?:\[\w{1,12}\])?: (?![\s\d.+\-]*(?:%|$|[,;|]))", re.I)),
    ("not found", re.compile(rb": (?:command )?not found$|: No such file or directory$", re.I)),
)
_COUNTS = re.compile(
    rb"\b(?:no|0|zero|without|any) (?:\w{1,20} )?(?:errors?|exceptions?)\b"
    rb"|\berrors?\s?[=:]\s?(?:0|none|null|false|\[\]|\{\})(?:\b|$|[\s,}])"
    rb"|\b(?:mean|max|min|avg|average|std|standard|train|val|test|validation|relative|absolute|squared?|reconstruction)"
    rb"[ _](?:\w{1,20}[ _])?error\b",
    re.I,
)
_COLOURS = re.compile(rb"\x1b\[[0-9;:]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Found:
    """Where the line begins, in bytes from the start of what was searched, and what it is."""

    at: int
    kind: str


def kind_of(line: bytes) -> str:
    """Return what a line of a log says went wrong, "" where it says nothing of the kind.

    Of a line that was written over (a progress bar) every state counts, as each was meant to be read.
    """
    line = _COLOURS.sub(b"", line[:LINE_LIMIT])
    for state in line.split(b"\r"):
        if not any(hint in state.lower() for hint in _HINTS) or _COUNTS.search(state):
            continue
        for kind, pattern in _KINDS:
            if pattern.search(state):
                return kind
    return ""


def first(block: bytes) -> Found | None:
    """Return the first line of a block that tells of an error, None where no line does. The block begins a line."""
    lower = block.lower()
    places = {hint: lower.find(hint) for hint in _HINTS}
    while (at := min((place for place in places.values() if place >= 0), default=-1)) >= 0:
        begin = block.rfind(b"\n", 0, at) + 1
        end = block.find(b"\n", at)
        end = len(block) if end < 0 else end
        if kind := kind_of(block[max(begin, at - LINE_LIMIT // 2) : end]):
            return Found(begin, kind)
        for hint, place in places.items():
            if 0 <= place < end:
                places[hint] = lower.find(hint, end)
    return None
