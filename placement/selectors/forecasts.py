"""How good the forecasts were: the page and the API, over the last days."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from placement.domain.forecasting.accuracy import Figures, by_ahead, figures
from placement.models import Forecast, ForecastRecord
from placement.selectors import expected, wording

DAYS = (7, 30)
_MOST = 50_000  # forecasts that one answer is made of, the newest
WORDS = {
    "limit": "the time limits of those before it",
    "learned": "what earlier runs took",
    "guess": "a guess: of some run nothing was known",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a table, as read; "–" where nobody of it has started yet. The last two are percentages, for bars."""

    name: str
    count: int
    late: str
    half: str
    error: str
    relative: str
    late_percent: float | None
    half_percent: float | None


@dataclass(frozen=True, slots=True)
class Period:
    """The forecasts of so many last days. ``untold``: jobs to which no time could be told at first."""

    days: int
    all: Line
    waiting: int
    untold: int
    by_sure: tuple[Line, ...]
    by_ahead: tuple[Line, ...]

    @property
    def empty(self) -> bool:
        """Return whether nothing can be said yet."""
        return self.all.late == "–"


def page() -> tuple[tuple[Period, ...], int]:
    """Return the figures of each period, and how many jobs are told a time right now."""
    return tuple(_period(days) for days in DAYS), Forecast.objects.exclude(expected_at=None).count()


def as_json() -> dict[str, Any]:
    """Return the same figures for the API: shares from 0 to 1, seconds, null where nobody has started yet."""
    return {f"last_{days}_days": _json(days) for days in DAYS}


def _period(days: int) -> Period:
    past = expected.past(timezone.now() - timedelta(days=days), _MOST)
    every = figures(past)
    kinds = ((WORDS[sure], [p for p in past if p.sure == sure]) for sure in WORDS)
    return Period(
        days=days,
        all=_line("all", every),
        waiting=every.waiting,
        untold=_untold(days),
        by_sure=tuple(_line(words, figures(some)) for words, some in kinds if some),
        by_ahead=tuple(_line(name, found) for name, found in by_ahead(past)),
    )


def _json(days: int) -> dict[str, Any]:
    past = expected.past(timezone.now() - timedelta(days=days), _MOST)
    return {
        **asdict(figures(past)),
        "untold": _untold(days),
        "by_sure": {sure: asdict(figures(p for p in past if p.sure == sure)) for sure in WORDS},
        "by_ahead": {name: asdict(found) for name, found in by_ahead(past)},
    }


def _untold(days: int) -> int:
    since = timezone.now() - timedelta(days=days)
    return ForecastRecord.objects.filter(at__gte=since, number=0, in_s=None).count()


def _line(name: str, found: Figures) -> Line:
    return Line(
        name=name,
        count=found.count,
        late=_share(found.within_late),
        half=_share(found.within_half),
        error=wording.span(found.error_s) or "–",
        relative=f"{found.relative:.0f} ×"
        if found.relative is not None and found.relative >= 10
        else _share(found.relative),
        late_percent=_percent(found.within_late),
        half_percent=_percent(found.within_half),
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _share(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"
