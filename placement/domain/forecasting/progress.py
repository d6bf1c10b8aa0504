"""How far a run is, read from the end of what it printed, or told from how long such runs take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

TAIL = 8 << 10  # bytes of a log that are looked at
MOVED = 0.005  # a share that moved by less is not written down
MOST_BY_LENGTH = 0.99  # what is told by a usual length alone never says "done"

# Bytes, not text: four times as quick, and nothing that is looked for is outside of ASCII but bars.
_ESCAPES = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f]")
_TOLD = re.compile(rb"TIDEGATE\s{1,4}progress\s?=\s?([0-9]{1,12}(?:\.[0-9]{1,12})?)\s?(%?)")
# 45%|####5     | 450/1000 [01:23<01:41, 5.4it/s]; the counts may have units: 1.2M/3.4M
_TQDM = re.compile(
    rb"(?P<percent>[0-9]{1,3})%\|[^|\r\n]{0,900}\|\s{0,4}"
    rb"(?P<done>[0-9][0-9.]{0,11})(?P<unit>[kKMGTPi]{0,2}B?)/(?P<total>[0-9][0-9.]{0,11})[kKMGTPi]{0,2}B?"
    rb"\s\[[0-9:]{4,12}<(?P<left>[0-9:]{4,12}|\?)"
)
_COUNTS = rb"(?P<done>[0-9]{1,12})\s?(?:/|of)\s?(?P<total>[0-9]{1,12})"
# 450/1000 [=====>......] - ETA: 1:41, and with a bar of U+2501 the newer 450/1000 ----- 3s
_DRAWN = re.compile(rb"(?<![\d/.])" + _COUNTS + rb"\s(?:\[[=>.]{5,120}\]|(?:\xe2\x94\x81){5,120})")
_NAMED = rb"s?\s?[:=#]?\s?[\[(]?\s?" + _COUNTS + rb"(?![0-9A-Za-z_])"
_STEP = re.compile(rb"(?<![a-z])(?:step|iter(?:ation)?|batch(?:es)?)" + _NAMED)
_EPOCH = re.compile(rb"(?<![a-z])epoch" + _NAMED)
_EPOCH_ALONE = re.compile(rb"epoch\s[0-9]{1,12}:\s*$")  # a bar of one epoch, of unknown many
_GOES_ON = re.compile(rb"\n\s*\S")
_TRIED = 20  # of one word in one tail: the last ones


@dataclass(frozen=True, slots=True)
class Seen:
    """What a log says: the share that is done, the seconds left where it says so, and which epoch of how many."""

    share: float
    left_s: float | None = None
    epoch: tuple[int, int] | None = None
    told: bool = False  # by a line that is meant for us


@dataclass(frozen=True, slots=True)
class _Bar:
    at: int
    end: int
    share: float
    left_s: float | None = None
    counts: tuple[int, int] = (0, 1)


def parse(tail: bytes, epoch: tuple[int, int] | None = None) -> Seen | None:
    """Return how far the end of a log says that its run is, None where it does not.

    The last statement wins. A bar below "Epoch 3/10" is a share of that epoch; ``epoch`` is the one that was seen
    earlier and may have scrolled out of sight. A bar that is full while the run prints on was one of several.
    """
    text = _ESCAPES.sub(b"", tail[-TAIL:])
    lower = text.lower()
    told, bar, named = _told(text), _bar(text, lower), _last(_EPOCH, (b"epoch",), lower)
    latest = max((found.at for found in (bar, named) if found), default=-1)
    if told is not None and told.at >= latest:
        return Seen(told.share, told=True)
    if named is not None:
        epoch = named.counts
    if epoch is not None and latest >= 0:
        number, of = epoch
        inner = bar.share if bar is not None and (named is None or bar.at >= named.at) else 0.0
        return Seen(min(1.0, (max(0, number - 1) + inner) / of), epoch=epoch)
    if bar is None or (bar.share >= 1.0 and _GOES_ON.search(text, bar.end)):
        return None
    return Seen(bar.share, bar.left_s)


def by_length(elapsed: float, usual: float | None) -> float | None:
    """Return the share of its usual length that a run has taken, in seconds; None where none is known."""
    if usual is None or not usual > 0 or not elapsed >= 0:
        return None
    return min(MOST_BY_LENGTH, elapsed / usual)


def moved(before: float | None, now: float | None) -> bool:
    """Return whether a share is worth writing down; the first and the last always are."""
    if before is None or now is None:
        return before is not now
    return abs(now - before) >= MOVED or (now >= 1.0) != (before >= 1.0)


def left(seen: Seen, elapsed: float) -> float | None:
    """Return the seconds that a run still takes: as its log says, else at the pace so far; None: too early to tell."""
    if seen.left_s is not None:
        return seen.left_s
    if seen.share < 0.02 or elapsed < 5:
        return None
    return elapsed * (1 - seen.share) / seen.share


def _told(text: bytes) -> _Bar | None:
    for at in _backwards(text, b"TIDEGATE"):
        match = _TOLD.match(text, at)
        if match and 0 <= (share := float(match[1]) / (100 if match[2] else 1)) <= 1:
            return _Bar(at, match.end(), share)
    return None


def _bar(text: bytes, lower: bytes) -> _Bar | None:
    """Return the last bar of any kind that makes sense."""
    drawn = _last(_DRAWN, (), text) if b"[=" in text or b"[>" in text or b"\xe2\x94\x81" in text else None
    found = (_tqdm(text, lower), drawn, _last(_STEP, (b"step", b"iter", b"batch"), lower))
    return max((bar for bar in found if bar), key=lambda bar: bar.at, default=None)


def _tqdm(text: bytes, lower: bytes) -> _Bar | None:
    for at in _backwards(text, b"%|"):
        match = _TQDM.search(text, max(0, at - 3), at + 1000)
        if match is None or match.end("percent") != at:
            continue
        begin = max(text.rfind(b"\n", 0, at), text.rfind(b"\r", 0, at)) + 1
        share = int(match["percent"]) / 100
        if not match["unit"] and match["done"].isdigit() and match["total"].isdigit() and int(match["total"]):
            exact = int(match["done"]) / int(match["total"])
            share = exact if abs(exact - share) <= 0.011 else -1.0  # finer, but where they disagree it is no such bar
        if 0 <= share <= 1 and not _EPOCH_ALONE.search(lower, begin, match.start()):
            return _Bar(match.start(), match.end(), share, _clock(match["left"]))
    return None


def _clock(text: bytes) -> float | None:
    """Return the seconds of "1:41" or "2:01:41", None of "?"."""
    parts = text.split(b":")
    if not 2 <= len(parts) <= 3 or not all(part.isdigit() for part in parts):
        return None
    seconds = 0.0
    for part in parts:
        seconds = seconds * 60 + int(part)
    return seconds


def _last(pattern: re.Pattern[bytes], words: tuple[bytes, ...], text: bytes) -> _Bar | None:
    """Return the last "n of m" of a kind with n at most m; its words, if any, are looked for first: that is quick."""
    best: _Bar | None = None
    starts = [at for word in words for at in _backwards(text, word)]
    matches = (pattern.match(text, at) for at in starts) if words else pattern.finditer(text)
    for match in matches:
        if match is None or (best is not None and match.start() < best.at):
            continue
        done, total = int(match["done"]), int(match["total"])
        if 0 < total >= done:
            best = _Bar(match.start(), match.end(), done / total, counts=(done, total))
    return best


def _backwards(text: bytes, word: bytes) -> Iterator[int]:
    """Yield where a word stands, the last place first."""
    at = len(text)
    for _ in range(_TRIED):
        at = text.rfind(word, 0, at)
        if at < 0:
            return
        yield at
