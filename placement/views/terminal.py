"""A terminal's output as safe markup: escaped first, colours after, everything else that a terminal obeys dropped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape

from django.utils.safestring import SafeString, mark_safe

LINE_LIMIT = 4000  # characters shown of one line
MARKUP_LIMIT = 120 * 1024  # bytes of markup in one answer

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


def markup(text: str) -> SafeString:
    """Return lines of text as escaped markup with colour spans, the newest lines where not all fit.

    A carriage return begins its line anew, so that a progress bar shows its last state.
    """
    lines: list[str] = []
    look = Look()
    for line in text.split("\n"):
        runs, look = _line(line, look)
        lines.append("".join(_spans(runs)))
    room = MARKUP_LIMIT
    first = len(lines)
    while first and room > 0:
        room -= len(lines[first - 1].encode()) + 1
        if room >= 0:
            first -= 1
    return mark_safe("\n".join(lines[first:]))  # every piece of text went through escape()


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


def _spans(runs: list[tuple[Look, str]]) -> Iterator[str]:
    room = LINE_LIMIT
    left_out = 0
    for look, text in runs:
        shown, rest = text[:room], text[room:]
        room -= len(shown)
        left_out += len(rest)
        if shown:
            body = escape(shown)
            yield f'<span class="{look.classes}">{body}</span>' if look.classes else body
    if left_out:
        yield f'<span class="cut"> … {left_out:,} more characters in this line</span>'


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
