"""A terminal's output as safe markup: escaped first, colours after, everything else that a terminal obeys dropped."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from html import escape

from django.utils.safestring import SafeString, mark_safe

LINE_LIMIT = 4000  # characters shown of one line
MARKUP_LIMIT = 112 * 1024  # bytes of markup in one answer
LINE_MARKUP = 32  # bytes that a line takes beside its text

_TOKENS = re.compile(
    r"\x1b\[(?P<sgr>[0-9;:]*)m"
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # other control sequences
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # titles, links and other strings, up to their end
    r"|\x1b[ -/]*[0-~]?"
    r"|(?P<cr>\r)"
    r"|(?P<bs>\x08)"
    r"|[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"  # other controls, and text direction overrides
    r"|(?P<text>[^\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]+)"
)


@dataclass(frozen=True, slots=True)
class Look:
    """How text looks: colour numbers 0-15, None for the page's own."""

    fore: int | None = None
    back: int | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    under: bool = False

    @property
    def classes(self) -> str:
        """Return CSS classes; these and nothing from the text itself reach an attribute."""
        names = [] if self.fore is None else [f"f{self.fore}"]
        names += [] if self.back is None else [f"k{self.back}"]
        names += [name for name in ("bold", "dim", "italic", "under") if getattr(self, name)]
        return " ".join(names)


def text_of(raw: bytes, *, whole: bool = True) -> str:
    """Return the text of a line; what is no UTF-8 shows as replacement marks.

    ``whole`` False: more of it may come, so that its last bytes may begin a character.
    """
    return codecs.getincrementaldecoder("utf-8")("replace").decode(raw, final=whole)


def lines(texts: Iterable[str], words: str = "", *, newest: bool = True) -> tuple[int, list[SafeString]]:
    """Return lines of text as escaped markup with colour spans, and how many are left out before them.

    A carriage return begins its line anew, so that a progress bar shows its last state. Where not all fit, the newest
    (or the first) do. ``words`` are marked where they stand.
    """
    made: list[str] = []
    look = Look()
    mark = re.compile(re.escape(words), re.IGNORECASE | re.ASCII) if words else None
    for text in texts:
        runs, look = _line(text, look)
        made.append("".join(_spans(runs, mark)))
    room, first, last = MARKUP_LIMIT, len(made) if newest else 0, len(made) if newest else 0
    while (first > 0) if newest else (last < len(made)):
        room -= len(made[first - 1 if newest else last].encode()) + LINE_MARKUP
        if room < 0:
            break
        first, last = (first - 1, last) if newest else (first, last + 1)
    return first, [mark_safe(line) for line in made[first:last]]  # every piece of text went through escape()


def _line(line: str, look: Look) -> tuple[list[tuple[Look, str]], Look]:
    """Return what is left of a line as (look, text) runs, and the look that the next line begins with."""
    runs: list[tuple[Look, str]] = []
    again = False
    for token in _TOKENS.finditer(line):
        if token["sgr"] is not None:
            look = _sgr(look, token["sgr"])
        elif token["cr"]:
            again = True
        elif token["bs"] and runs and not again:
            before, text = runs.pop()
            if len(text) > 1:
                runs.append((before, text[:-1]))
        elif token["text"]:
            if again:
                runs, again = [], False
            runs.append((look, token["text"]))
    return runs, look


def _spans(runs: list[tuple[Look, str]], mark: re.Pattern[str] | None) -> Iterator[str]:
    room = LINE_LIMIT
    left_out = 0
    for look, text in runs:
        shown, rest = text[:room], text[room:]
        room -= len(shown)
        left_out += len(rest)
        if shown:
            body = _marked(shown, mark) if mark else escape(shown)
            yield f'<span class="{look.classes}">{body}</span>' if look.classes else body
    if left_out:
        yield f'<span class="cut"> … {left_out:,} more characters in this line</span>'


def _marked(text: str, mark: re.Pattern[str]) -> str:
    found, at = [], 0
    for match in mark.finditer(text):
        found += [escape(text[at : match.start()]), "<mark>", escape(match[0]), "</mark>"]
        at = match.end()
    return "".join([*found, escape(text[at:])])


def _sgr(look: Look, text: str) -> Look:
    codes = [int(part) if part and len(part) < 4 else 0 for part in re.split("[;:]", text)]
    at = 0
    while at < len(codes):
        code = codes[at]
        if code in (38, 48):
            kind = codes[at + 1] if at + 1 < len(codes) else 0
            number = codes[at + 2] if kind == 5 and at + 2 < len(codes) else None
            colour = number if number is not None and number < 16 else None
            look = replace(look, fore=colour) if code == 38 else replace(look, back=colour)
            at += {5: 3, 2: 5}.get(kind, 2)
            continue
        look = _one(look, code)
        at += 1
    return look


def _one(look: Look, code: int) -> Look:
    if code == 0:
        return Look()
    for low, shift, name in ((30, 0, "fore"), (90, 8, "fore"), (40, 0, "back"), (100, 8, "back")):
        if low <= code < low + 8:
            return replace(look, **{name: code - low + shift})
    on = {1: "bold", 2: "dim", 3: "italic", 4: "under"}.get(code)
    if on:
        return replace(look, **{on: True})
    off = {22: ("bold", "dim"), 23: ("italic",), 24: ("under",)}.get(code, ())
    if off:
        return replace(look, **dict.fromkeys(off, False))
    if code in (39, 49):
        return replace(look, **{"fore" if code == 39 else "back": None})
    return look
