"""What a submission says about when and how often it may run, and everything that can be wrong with that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, Protocol

from placement.domain.ending.retries import MOST_TIMES, MOST_WAIT_S, REPEATABLE, USUAL, WAIT_S, Policy
from placement.domain.jobs import Outcome
from placement.domain.submitting import sweeps
from placement.domain.submitting.arrays import MOST_MEMBERS
from placement.domain.world.conditions import After

MOST_TIES = 100
MOST_TIES_OF_AN_ARRAY = 20_000
LATEST = 4_102_444_800.0  # unix seconds, the year 2100: later is a slip of the finger
_NAMED = re.compile(r"#?(\d{1,18})(?:\s+(\w+))?", re.ASCII)


class Terms(Protocol):
    """The fields of a submission that are looked at here. ``after`` is (job, how it has to end) pairs."""

    @property
    def after(self) -> tuple[tuple[int, str], ...]: ...
    @property
    def not_before(self) -> float | None: ...
    @property
    def array(self) -> int: ...
    @property
    def array_limit(self) -> int | None: ...
    @property
    def sweep(self) -> Mapping[str, tuple[str, ...]]: ...
    @property
    def retry_times(self) -> int | None: ...
    @property
    def retry_on(self) -> tuple[str, ...]: ...
    @property
    def retry_wait_s(self) -> float | None: ...


def problems(s: Terms) -> Iterator[tuple[str, str]]:
    """Yield (field, sentence) for what cannot be taken; no value of any type raises."""
    yield from _after(s.after)
    at: Any = s.not_before
    if at is not None and not (_number(at) and 0 <= at <= LATEST):
        yield "not_before", "It must be a time before the year 2100, as seconds since 1970."
    if not _whole(s.array) or not 0 <= s.array <= MOST_MEMBERS:
        yield "array", f"An array has 1 to {MOST_MEMBERS:,} members; leave it empty for a single job."
        return
    limit: Any = s.array_limit
    if limit is not None and not (s.array or s.sweep):
        yield "array_limit", "Only an array or a sweep has a limit of how many run at once; say how many jobs it makes."
    elif limit is not None and (not _whole(limit) or not 1 <= limit <= MOST_MEMBERS):
        yield "array_limit", f"It must be a whole number from 1 to {MOST_MEMBERS:,}; leave it empty for no limit."
    made = s.array or sweeps.count(s.sweep)
    ties = made * (len(s.after) if isinstance(s.after, tuple) else 0)
    if ties > MOST_TIES_OF_AN_ARRAY:
        words = f"{made:,} members that wait for {len(s.after)} jobs each are {ties:,} ties"
        yield "after", f"{words}; {MOST_TIES_OF_AN_ARRAY:,} are the most."
    yield from _retry(s)


def policy(s: Terms, workload: Policy | None) -> Policy | None:
    """Return how the job is run again: the submission's own answers over its workload's; None for not at all."""
    times = s.retry_times if s.retry_times is not None else workload.times if workload else 0
    if times == 0:
        return None
    on = tuple(Outcome(o) for o in s.retry_on) or (workload.on if workload else USUAL)
    wait = s.retry_wait_s if s.retry_wait_s is not None else workload.wait_s if workload else WAIT_S
    return Policy(times, on, wait) if workload is None else Policy(times, on, wait, workload.longest_s)


def parse_after(text: str) -> tuple[tuple[int, str], ...]:
    """Return the pairs of ``12, 15 any, #17 failed``; a number alone means "ok". Raise ValueError with a sentence."""
    found = []
    for part in (p.strip() for p in re.split(r"[,;\n]", text)):
        if not part:
            continue
        match = _NAMED.fullmatch(part)
        if match is None or (match[2] or "ok").lower() not in set(After):
            raise ValueError(
                f"{part[:40]!r} names no job. Write numbers, each with how it has to end, such as 12 ok, 15 any, "
                "17 failed; a number alone means ok."
            )
        found.append((int(match[1]), (match[2] or "ok").lower()))
    return tuple(found)


def parse_outcomes(text: str) -> tuple[str, ...]:
    """Return the outcomes of ``failed, out of memory``. Raise ValueError naming those that can be chosen."""
    found = []
    for part in (p.strip().lower().replace(" ", "_") for p in re.split(r"[,;\n]", text)):
        if part and part not in set(REPEATABLE):
            raise ValueError(_no_outcome(part))
        if part:
            found.append(part)
    return tuple(dict.fromkeys(found))


def parse_moment(text: str, zone: tzinfo | None) -> float:
    """Return the unix seconds of a date and time. ``zone`` is that of a text without one; None: it has to say it.

    Raise ValueError with a sentence, also for an hour that a change of clocks leaves out.
    """
    shown = text.strip()[:40]
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{shown!r} is no date and time. Write one such as 2026-12-01 08:00.") from None
    if not 1970 < at.year < 2100:
        raise ValueError(f"{shown!r} is not a time at which anything could start here.")
    if len(text.strip()) <= 10:
        raise ValueError(f"{shown!r} has no time of day. Write one such as 2026-12-01 08:00.")
    if at.tzinfo is None and zone is None:
        raise ValueError(f"{shown!r} says no zone. Add one: 2026-12-01T08:00Z, or +01:00 at its end.")
    if at.tzinfo is None:
        local = at.replace(tzinfo=zone)
        if local.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != at:
            raise ValueError(f"{shown!r} does not exist there: the clocks go forward over it.")
        at = local
    return at.timestamp()


def _no_outcome(part: str) -> str:
    known = ", ".join(o.value.replace("_", " ") for o in REPEATABLE)
    if part == Outcome.CANCELLED:
        return f"A cancelled job is never run again by itself. Choose from: {known}."
    return f"{part[:40]!r} is no end that can be followed by another try. Choose from: {known}."


def _after(after: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(after, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in after):
        yield "after", "It must be a list of jobs, each with how it has to end."
        return
    if len(after) > MOST_TIES:
        yield "after", f"It names {len(after):,} jobs; {MOST_TIES} are the most."
    for job, when in after:
        if not _whole(job) or not 0 < job < 2**63:
            yield "after", f"{str(job)[:40]!r} is not a job's number."
        elif not isinstance(when, str) or when not in set(After):
            yield "after", f"#{job} has to end in one of the ways {', '.join(After)}, not {str(when)[:40]!r}."


def _retry(s: Terms) -> Iterator[tuple[str, str]]:
    times: Any = s.retry_times
    if times is not None and (not _whole(times) or not 0 <= times <= MOST_TIMES):
        yield "retry_times", f"It must be a whole number from 0 to {MOST_TIMES}."
    on: Any = s.retry_on
    if not isinstance(on, tuple) or not all(isinstance(o, str) for o in on):
        yield "retry_on", "It must be a list of ends."
    else:
        for wrong in (o for o in on if o not in set(REPEATABLE)):
            yield "retry_on", _no_outcome(wrong)
    wait: Any = s.retry_wait_s
    if wait is not None and not (_number(wait) and 0 <= wait <= MOST_WAIT_S):
        yield "retry_wait_s", f"It must be from 0 to {MOST_WAIT_S:,.0f} seconds (a week)."


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    """Return whether it is a number; its range leaves out what is not finite, and no integer is too long for that."""
    return isinstance(value, int | float) and not isinstance(value, bool)
