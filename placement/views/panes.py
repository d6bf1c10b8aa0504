"""The lines of a log as list items, and what stands at their two ends."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from placement.selectors.log_lines import Stretch
from placement.views import terminal


@dataclass(frozen=True, slots=True)
class Pane:
    """One stream's lines as safe markup. ``earlier`` and ``later``: the byte at which what is left out ends or begins.

    ``since`` is where the next look goes on, None where nothing follows: ``unfinished`` is the line that stands there.
    """

    stream: str
    body: str = ""
    earlier: int | None = None
    later: int | None = None
    since: int | None = None
    unfinished: str = ""
    version: str = ""
    size: int = 0
    numbered: bool = True
    words: str = ""
    prefix: str = ""
    gone: str = ""

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to show yet."""
        return not (self.body or self.unfinished)


def pane(
    stream: str,
    found: Stretch,
    *,
    live: bool,
    newest: bool = True,
    hit: int | None = None,
    words: str = "",
    prefix: str = "",
) -> Pane:
    """Return the lines of a stretch; of a live one the line without an end stands by itself, as it may still change."""
    texts = [
        terminal.text_of(raw, whole=index < len(found.lines) - 1 or not live)
        for index, (_, raw) in enumerate(found.lines)
    ]
    before, made = terminal.lines(texts, words, newest=newest)
    places = [at for at, _ in found.lines[before : before + len(made)]]
    left_out_at = places[0] if places else found.end
    behind = found.lines[before + len(made)][0] if before + len(made) < len(found.lines) else found.end
    unfinished, since = "", None
    if live:
        since = found.end
        if found.open and made:
            since, unfinished = places.pop(), made.pop()
    return Pane(
        stream,
        body=_items(places, made, None if found.number is None else found.number + before, hit, prefix),
        earlier=left_out_at if left_out_at > 0 else None,
        later=behind if behind < found.size else None,
        since=since,
        unfinished=unfinished,
        version=found.version,
        size=found.size,
        numbered=found.number is not None,
        words=words,
        prefix=prefix,
    )


def part(shown: Pane, *, earlier: bool = False, later: bool = False) -> Pane:
    """Return the same without the ends that another part has."""
    return replace(shown, earlier=shown.earlier if earlier else None, later=shown.later if later else None)


def _items(places: list[int], made: list[SafeString], number: int | None, hit: int | None, prefix: str) -> SafeString:
    """Return one list item a line; the first says its number, the others count on."""
    chosen = max((i for i, at in enumerate(places) if hit is not None and at <= hit), default=-1)
    items: list[str] = []
    for index, line in enumerate(made):
        names = format_html(' id="{}L{}"', prefix, number + index) if number is not None else ""
        if number is not None and index == 0:
            names += format_html(' value="{}"', number)
        if index == chosen:
            names += ' class="hit" tabindex="-1"'
        items.append(f"<li{names}>{line}</li>")
    return mark_safe("".join(items))  # lines were escaped by the terminal, the rest is ours
