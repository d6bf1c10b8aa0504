"""Knobs as admins see them: by subject, with unit, bounds, default, and who turned one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from calibration.domain.knobs import KNOBS
from placement.domain.knobs import TABLE
from placement.models import KnobOverride
from placement.snapshots import knobs_now

# Which names belong together; the first row whose beginning fits takes a knob.
SUBJECTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("When a node or device takes nothing", ("stale_", "node_", "disk_", "process_", "ram_")),
    ("First runs", ("cold_", "settle_", "flat_", "unproven_", "unseen_")),
    ("What is kept free", ("floor_", "context_")),
    ("Order and forecasts", ("overtaking", "ageing_", "default_duration", "plan_", "overdue_")),
    ("What one person may hold", ("quota_", "taken_")),
    ("What a run is charged", (
        "measured_", "fitted_", "scaled_", "edited_", "similar_", "hint_", "declared_", "quantile", "window_", "few_",
        "two_kinds_", "prealloc", "min_samples", "blind_",
    )),
    ("Caps, and what follows a death", ("cap_", "death_", "watchdog_", "watch_", "fast_")),
    ("Start and end of a run", ("cycle_", "redispatch_", "drain_", "grace_", "revoke_", "leftovers", "sweep_", "log_")),
    ("What is kept, and how long", ("keep_", "history_")),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KnobLine:
    """One knob. Values are as its field takes them back; ``who`` is "" while it stands at its default."""

    name: str
    help: str
    unit: str
    value: str
    default: str
    accepts: str
    choices: tuple[str, ...]
    who: str
    at: datetime | None
    by_setting: bool

    @property
    def turned(self) -> bool:
        """Return whether it is not at its default."""
        return bool(self.who) or self.by_setting


@dataclass(frozen=True, slots=True)
class Subject:
    """Knobs that belong together."""

    title: str
    knobs: tuple[KnobLine, ...]


def subjects(text: str = "", *, turned: bool = False) -> tuple[Subject, ...]:
    """Return all knobs by subject; only those with this text in name or help, only those that were turned."""
    lines = _lines()
    wanted = [k for k in lines if (k.turned or not turned) and text.lower() in f"{k.name} {k.help}".lower()]
    grouped = [Subject(title, tuple(k for k in wanted if subject_of(k.name) == title)) for title, _ in SUBJECTS]
    return tuple(subject for subject in grouped if subject.knobs)


def subject_of(name: str) -> str:
    """Return the subject that a knob belongs to. Raises LookupError for one that none takes."""
    for title, beginnings in SUBJECTS:
        if name.startswith(beginnings):
            return title
    raise LookupError(f"No subject takes the knob {name}; give it one in SUBJECTS.")


def _lines() -> tuple[KnobLine, ...]:
    rows = {row.name: row for row in KnobOverride.objects.all()}
    ours, theirs = knobs_now()
    first = {knob.name: _line(knob, getattr(ours, knob.name), rows.get(knob.name)) for knob in TABLE}
    second = {k.name: _line(k, getattr(theirs, k.name), rows.get(k.name)) for k in KNOBS if k.name not in first}
    return (*first.values(), *second.values())


def _line(knob: Any, value: Any, row: KnobOverride | None) -> KnobLine:
    choices = getattr(knob, "choices", ())
    return KnobLine(
        name=knob.name,
        help=str(knob.help).rstrip("."),
        unit="" if choices else knob.unit,
        value=_text(value),
        default=_text(knob.default),
        accepts=_accepts(knob),
        choices=choices,
        who=row.who if row else "",
        at=row.at if row else None,
        by_setting=row is None and knob.name in settings.KNOB_OVERRIDES,
    )


def _accepts(knob: Any) -> str:
    if getattr(knob, "choices", ()):
        return ""
    word = "whole number" if isinstance(knob.default, int) else "number"
    return f"{word} from {knob.low or 0:g} to {knob.high:,.10g}"


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
