"""A stored decision and a stored estimate as rows to show: checks with bars, the ladder rung by rung."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from calibration.domain.resources import gib
from placement.domain.world import text
from placement.selectors import sums
from placement.selectors.sums import Piece
from placement.selectors.wording import listing, mapping, whole

PLACES = 4  # so many places stand open on a page


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a check, as people read it and exactly."""

    name: str
    text: str
    exact: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One question of the gate. ``need_at`` is where the need ends on the bar, None without a bar."""

    code: str
    ok: bool
    sentence: str
    figures: tuple[Figure, ...] = ()
    shortfall: str = ""
    total: str = ""  # the sum that made the room, in words
    bar: tuple[Piece, ...] = ()
    need_at: float | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """One candidate. ``line`` is its first objection, "" where all checks passed."""

    label: str
    device: str
    checks: tuple[CheckRow, ...]
    ok: bool
    line: str
    bad: int

    @property
    def objections(self) -> tuple[CheckRow, ...]:
        """Return what says no there."""
        return tuple(row for row in self.checks if not row.ok)

    @property
    def passed(self) -> tuple[CheckRow, ...]:
        """Return what says yes there."""
        return tuple(row for row in self.checks if row.ok)


@dataclass(frozen=True, slots=True)
class Once:
    """An objection of several places; ``where`` names those that it is about, "" where that is all that stand open."""

    row: CheckRow
    where: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A whole decision, the leading place first."""

    headline: str
    code: str
    whole: tuple[CheckRow, ...]
    places: tuple[Place, ...]
    shortfall: str = ""
    filled: float | None = None  # percent of the need that the best place has room for

    @property
    def objections(self) -> tuple[CheckRow, ...]:
        """Return what says no wherever it would run."""
        return tuple(row for row in self.whole if not row.ok)

    @property
    def passed(self) -> tuple[CheckRow, ...]:
        """Return what says yes wherever it would run."""
        return tuple(row for row in self.whole if row.ok)

    @property
    def count(self) -> int:
        """Return how many questions passed, of all places together."""
        return len(self.passed) + (len(self.passed_once) or sum(len(place.passed) for place in self.places))

    @property
    def shown(self) -> tuple[Place, ...]:
        """Return the places whose objections stand open: the nearest ones."""
        return self.places[:PLACES]

    @property
    def further(self) -> tuple[Place, ...]:
        """Return the places that are folded away; what was said already is not said again."""
        said = {one.row for one in self.once}
        if not said:
            return self.places[PLACES:]
        found = []
        for place in self.places[PLACES:]:
            found.append(replace(place, checks=tuple(row for row in place.checks if row.ok or row not in said)))
            said.update(place.objections)
        return tuple(found)

    @property
    def once(self) -> tuple[Once, ...]:
        """Return what says no at the places that stand open, each once; () where none of it is said of two.

        A group's sets have devices in common, all places of a node its RAM.
        """
        found: dict[CheckRow, list[str]] = {}
        for place in self.shown:
            for row in place.objections:
                found.setdefault(row, []).append(place.label)
        if all(len(labels) == 1 for labels in found.values()):
            return ()
        every = len(self.shown)
        return tuple(Once(row, "" if len(labels) == every else ", ".join(labels)) for row, labels in found.items())

    @property
    def apart(self) -> tuple[Place, ...]:
        """Return the places of which what passed is told one by one."""
        return () if self.once else self.places

    @property
    def passed_once(self) -> tuple[CheckRow, ...]:
        """Return what says yes at some place, each once; () where each place is told by itself."""
        return tuple(dict.fromkeys(row for place in self.places for row in place.passed)) if self.once else ()


def of(decision: Any) -> Verdict | None:
    """Return the rows of a stored decision, None where there is none."""
    body = mapping(decision)
    if not body:
        return None
    places = tuple(_place(c) for c in listing(body.get("candidates")) if isinstance(c, dict))
    shortfall, filled = _shortfall(listing(body.get("candidates")))
    return Verdict(
        headline=str(body.get("headline") or ""),
        code=str(body.get("code") or ""),
        whole=tuple(check(c) for c in listing(body.get("whole")) if isinstance(c, dict)),
        places=places,
        shortfall=shortfall,
        filled=filled,
    )


@dataclass(frozen=True, slots=True)
class Brief:
    """What one line says of a decision: what the leading place lacks."""

    shortfall: str
    filled: float | None  # percent of the need that the best place has room for


def brief(decision: Any) -> Brief:
    """Return the line's part of a stored decision, empty where there is none."""
    body = mapping(decision)
    shortfall, filled = _shortfall(listing(body.get("candidates")))
    return Brief(shortfall, filled)


def settled(seen: Verdict | None) -> Verdict | None:
    """Return the verdict without the words of what passed, to compare two of them."""
    if seen is None:
        return None
    return replace(
        seen,
        whole=_objections(seen.whole),
        places=tuple(replace(place, checks=_objections(place.checks)) for place in seen.places),
    )


def _objections(checks: tuple[CheckRow, ...]) -> tuple[CheckRow, ...]:
    return tuple(CheckRow(row.code, True, "") if row.ok else row for row in checks)


def check(raw: Mapping[str, Any]) -> CheckRow:
    """Return one stored check as a row; its bar is drawn where its figures make one."""
    figures = mapping(raw.get("figures"))
    sentence = str(raw.get("sentence") or "")
    bar, need_at = sums.bar(figures)
    short = whole(raw.get("shortfall")) or 0
    return CheckRow(
        code=str(raw.get("code") or ""),
        ok=bool(raw.get("ok")),
        sentence=sentence,
        figures=_besides(figures, sentence),
        shortfall=f"{gib(short)} short" if short else "",
        total=sums.total(figures),
        bar=bar,
        need_at=need_at,
    )


def _place(raw: Mapping[str, Any]) -> Place:
    found = (check(c) for c in listing(raw.get("checks")) if isinstance(c, dict))
    rows = tuple(sorted(found, key=lambda row: row.ok))  # what is in the way first, else as the gate asked
    bad = [row for row in rows if not row.ok]
    label = str(raw.get("label") or raw.get("device") or raw.get("node") or "")
    line = bad[0].sentence if bad else ""
    return Place(label, str(raw.get("device") or ""), rows, not bad, line, len(bad))


def _shortfall(candidates: Iterable[Any]) -> tuple[str, float | None]:
    """Return what the leading place lacks, as text and as the filled share of the need."""
    for place in candidates:
        room, need = mapping(mapping(place).get("room")), mapping(mapping(place).get("need"))
        for raw in listing(mapping(place).get("checks")):
            pool, short = str(mapping(raw).get("pool") or ""), whole(mapping(raw).get("shortfall")) or 0
            if mapping(raw).get("ok") or not short:
                continue
            wanted = whole(need.get(pool))
            has = whole(room.get(pool))
            share = None
            if wanted and has is not None:
                share = round(min(1.0, max(0, has) / wanted) * 98, 0)
            return f"{gib(short)} short", share
        return "", None
    return "", None


def _besides(figures: Mapping[str, Any], sentence: str) -> tuple[Figure, ...]:
    """Return the figures that the sentence does not tell; a second of the gate's own clock says nothing to people."""
    shown = (Figure(_label(name), *_figure(name, value)) for name, value in figures.items() if name != "at")
    words = f" {sentence.rstrip('.')} ".replace(",", " ").replace(";", " ")
    return tuple(figure for figure in shown if f" {figure.text} " not in words)


def _label(name: str) -> str:
    """Return "growth of #38" for growth_38, else the name with spaces and without a unit of time."""
    name = name.removesuffix("_s")
    word, _, number = name.rpartition("_")
    return f"{word} of #{number}" if word and number.isdecimal() else name.replace("_", " ")


_NO_DATE = 10**9  # seconds since 1970 that no moment of a decision lies before (2001)


def _moment(value: Any) -> tuple[str, str]:
    """Return a moment, stored as text or in unix seconds, to the second and as it is stored; None is an open end."""
    if value is None:
        return "open", ""
    if isinstance(value, int | float) and 0 <= value < _NO_DATE:
        return text.seconds(float(value)), f"{value} s"  # how long it lasted, as decisions of earlier versions say it
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value, UTC)
    except (ValueError, TypeError, OverflowError):
        return str(value), ""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC", str(value)


def _figure(name: str, value: Any) -> tuple[str, str]:
    """Return a figure as people read it and exactly; names that end in a unit of time are seconds."""
    if name == "for" and value is not None:
        return f"#{value}", ""
    if name in ("since", "until", "not_before"):
        return _moment(value)
    if value is None:
        return "unknown", ""
    if isinstance(value, bool | str):
        return str(value), ""
    if name.endswith(("_s", "age", "seconds")) or name in ("in", "lasts"):
        return text.seconds(float(value)), f"{value} s"  # as the sentence beside it says it
    if isinstance(value, float):
        return (f"{value * 100:.1f} %", "") if 0 <= value <= 1 else (f"{value:g}", "")
    if abs(value) < 2**16:
        return str(value), ""
    return gib(value), f"{value:,} bytes"
