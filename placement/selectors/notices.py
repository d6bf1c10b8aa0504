"""What a person is told of, as the bell, the list and the settings show it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from placement.domain import notices
from placement.domain.notices import Kind
from placement.models import Delivery, Hook, Notice, NoticeSettings
from placement.selectors.kept import POLLED, Kept

SHOWN = 50
NEWS = 3  # newest unread ones that the bell brings along
MOST_COUNTED = 100


@dataclass(frozen=True, slots=True)
class Line:
    """One notice. ``job`` and ``array``: where it leads."""

    id: int
    kind: str
    tone: str
    title: str
    sentence: str
    at: datetime
    job: int | None
    array: int | None
    unread: bool

    @property
    def word(self) -> str:
        """Return the kind as pages write it."""
        return self.kind.replace("_", " ")


@dataclass(frozen=True, slots=True)
class Bell:
    """How many notices are unread, and the newest of them."""

    unread: int
    newest: int
    news: tuple[Line, ...]

    @property
    def version(self) -> str:
        """Return what changes with them."""
        return f"{self.newest}-{self.unread}"

    @property
    def count(self) -> str:
        """Return the count as it is shown."""
        return f"{MOST_COUNTED - 1}+" if self.unread >= MOST_COUNTED else str(self.unread)


@dataclass(frozen=True, slots=True)
class Choice:
    """One kind of notice that can be chosen."""

    kind: str
    words: str
    on: bool


@dataclass(frozen=True, slots=True)
class HookRow:
    """One place that notices go to. ``waits``: how many are still to go there, ``busy``: some of them right now."""

    id: int
    name: str
    shown: str
    on: bool
    choices: tuple[Choice, ...]
    last_at: datetime | None
    last_ok: bool | None
    last_sentence: str
    waits: int
    busy: bool


_bell: Kept[Bell] = Kept()


def bell(user: Any) -> Bell:
    """Return a person's bell; many tabs of theirs ask at once."""
    return _bell.get(user.pk, lambda: _ring(user), anyhow=POLLED)


def page(user: Any, before: int | None = None) -> tuple[tuple[Line, ...], int | None]:
    """Return a page of notices, newest first, and where the next one begins (None: nowhere)."""
    rows = Notice.objects.filter(user=user).order_by("-pk")
    if before is not None:
        rows = rows.filter(pk__lt=before)
    found = list(rows[: SHOWN + 1])
    seen = _seen(user)
    lines = tuple(_line(row, seen) for row in found[:SHOWN])
    return lines, lines[-1].id if len(found) > SHOWN else None


def choices(user: Any) -> tuple[tuple[Choice, ...], int]:
    """Return what a person is told of in pages, and the minutes of waiting after which a start is told."""
    row = NoticeSettings.objects.filter(user=user).first()
    return _choices(row.kinds if row else notices.DEFAULT), row.waited_min if row else 10


def new_hook() -> tuple[Choice, ...]:
    """Return what a new place is told of unless its owner chooses: what they would come back for."""
    return _choices((Kind.FINISHED, Kind.FAILED, Kind.STOPPED, Kind.HELD, Kind.HOLD_ENDS))


def hooks(user: Any) -> tuple[HookRow, ...]:
    """Return where a person's notices go."""
    found = list(Hook.objects.filter(user=user).defer("sealed").order_by("pk"))
    waiting: dict[int, list[bool]] = {}
    for hook, kind, tries in Delivery.objects.filter(hook__in=found).values_list("hook", "kind", "tries"):
        waiting.setdefault(hook, []).append(kind == Kind.TEST or not tries)
    return tuple(
        HookRow(
            hook.pk, hook.name, hook.shown, hook.on, _choices(hook.kinds),
            hook.last_at, hook.last_ok, hook.last_sentence,
            len(waiting.get(hook.pk, ())), any(waiting.get(hook.pk, ())),
        )
        for hook in found
    )  # fmt: skip


def _ring(user: Any) -> Bell:
    seen = _seen(user)
    rows = list(Notice.objects.filter(user=user, pk__gt=seen).order_by("-pk")[:MOST_COUNTED])
    return Bell(len(rows), rows[0].pk if rows else seen, tuple(_line(row, seen) for row in rows[:NEWS]))


def _seen(user: Any) -> int:
    return NoticeSettings.objects.filter(user=user).values_list("seen", flat=True).first() or 0


def _line(row: Notice, seen: int) -> Line:
    tone = next((tone for kind, tone in notices.TONES.items() if kind == row.kind), "stop")
    return Line(row.pk, row.kind, tone, row.title, row.sentence, row.at, row.job_id, row.array_id, row.pk > seen)


def _choices(kinds: Any) -> tuple[Choice, ...]:
    listed = kinds if isinstance(kinds, list | tuple) else ()
    return tuple(Choice(str(kind), words, kind in listed) for kind, words in notices.WORDS.items())
