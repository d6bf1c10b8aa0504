"""Words for codes: one table each, so that every page says the same thing the same way."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from calibration.domain.resources import KIB, MIB, gib

STEP = 64 * KIB  # in which amounts below a MiB are told
_TWO_DAYS = 2 * 86_400  # seconds
_MONTH = timedelta(days=30)
RUNGS = {
    "measured": "measured",
    "fitted": "fitted",
    "scaled": "scaled",
    "edited": "edited",
    "similar": "similar",
    "hint": "hint",
    "declared": "declared",
    "cold_start": "cold start",
    "pinned": "pinned",
}
RUNG_HELP = {
    "measured": "runs with these parameters were watched",
    "fitted": "a line through several worker counts",
    "scaled": "one worker count, scaled, or a settled run of this kind that still goes on",
    "edited": "the last known need, from before the sources changed",
    "similar": "the largest run of this script with any arguments",
    "hint": "the author's preset",
    "declared": "what the submitter said",
    "cold_start": "nothing is known yet",
    "pinned": "a number that an operator set",
}
OUTCOMES = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "timed_out": "timed out",
    "cap_exceeded": "over its cap",
    "out_of_memory": "out of memory",
    "start_failed": "could not start",
    "lost": "lost",
}
OUTCOME_TONES = {"completed": "ok", "cancelled": "quiet"}
CODES = {
    "infeasible": "could never start on this hardware",
    "held": "held by a person",
    "draining": "draining",
    "node_stale": "the node is not answering",
    "node_no_work": "the node takes no work",
    "disk_low": "disk space is low",
    "process_limit": "process limit",
    "job_held": "this job is held",
    "no_account": "no account to run as",
    "depends": "waits for other jobs",
    "not_before": "its time has not come",
    "array_limit": "its array runs enough at once",
    "quota": "its owner's quota",
    "no_reading": "no figures to go by",
    "stale_reading": "reading too old",
    "device_lost": "device lost",
    "ram_pressure": "memory pressure",
    "exclusive_job": "one job at a time on the machine",
    "exclusive_device": "one job at a time on the device",
    "cold_start": "a first run settles there",
    "cold_start_room": "room for a first run",
    "booked": "declared capacity",
    "no_room": "measured room",
    "placement_pressure": "others wait for what it will ask for",
    "set_aside": "kept for an older job",
}


def rung(basis: str) -> str:
    """Return the rung as people read it."""
    return RUNGS.get(basis, basis.replace("_", " "))


def rung_class(basis: str) -> str:
    """Return the chip's class: trust has a shape, from solid to dashed."""
    return f"rung-{basis.replace('_', '-')}" if basis in RUNGS else "rung-hint"


def outcome_tone(outcome: str) -> str:
    """Return "ok", "quiet" or "stop"."""
    return OUTCOME_TONES.get(outcome, "stop")


def of(part: int | None, whole: int | None) -> str:
    """Return "11.0 of 13.1 GiB"; the unit is written once where both share it.

    Two that differ by less than a thousandth are told alike: both in single bytes say nothing more to people.
    """
    if part is not None and whole is not None:
        alike = max(part, whole) - min(part, whole) < max(part, whole) / 1000
        left, right = (gib(part), gib(whole)) if alike else (gib(part, whole), gib(whole, part))
        if left.split(" ")[-1] == right.split(" ")[-1]:
            left = left.rsplit(" ", 1)[0]
        return f"{left} of {right}"
    return f"{gib(part)} of {gib(whole)}"


def steady(amount: int | None) -> int | None:
    """Return an amount below a MiB in steps of 64 KiB: an idle job's RAM wavers by pages, which is news to nobody."""
    return amount if amount is None or not STEP <= amount < MIB else amount // STEP * STEP


def span(seconds: float | None) -> str:
    """Return a duration in at most two units: "40 s", "4 min", "1 h 20 min", "2 d 3 h"; "" for None."""
    if seconds is None:
        return ""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    hours, minutes = whole // 3600, whole % 3600 // 60
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = hours // 24, hours % 24
    return f"{days} d {hours} h" if hours else f"{days} d"


def near(at: datetime, now: datetime) -> str:
    """Return "14:30" of today, "2026-12-03 14:30" of other days, "2031-01-01" of what is a month ahead or more.

    Both in one zone. The browser does the same in the reader's (times.js).
    """
    if at.date() == now.date():
        return f"{at:%H:%M}"
    return f"{at:%Y-%m-%d}" if at - now > _MONTH else f"{at:%Y-%m-%d %H:%M}"


def ahead(at: datetime, now: datetime) -> str:
    """Return "in about 20 min", "about 2026-12-03 14:30" of what is two days ahead or more."""
    seconds = (at - now).total_seconds()
    if seconds < 60:
        return "any moment now"
    return f"in about {span(seconds)}" if seconds < _TWO_DAYS else f"about {near(at, now)}"


def held(who: str, until: datetime | None, why: str) -> str:
    """Return "held by ada until 14:30: reboot" without its time (pages show the time themselves)."""
    return f"held by {who}" + (f": {why}" if why else "")


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a JSON value as a mapping; what is not one counts as empty (an old row must still show)."""
    return value if isinstance(value, dict) else {}


def listing(value: Any) -> list[Any]:
    """Return a JSON value as a list; what is not one counts as empty."""
    return value if isinstance(value, list) else []


def whole(value: Any) -> int | None:
    """Return a JSON value as bytes; None for everything that is no whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
