"""What a job waits for and what follows from it, for its page and the API; and its array in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import AbstractBaseUser
from django.db.models import Count

from placement.domain.ending import retries
from placement.domain.jobs import Outcome, State
from placement.domain.world.conditions import After, Tie
from placement.models import Job, JobArray, Role
from placement.selectors import access, wording

SHOWN = 20  # of the jobs that wait for one
_STATES = {"queued": "waiting", "admitted": "starting", "running": "running"}


@dataclass(frozen=True, slots=True)
class Term:
    """One line: words before a link to another job (or an array), or a time, and words after it."""

    words: str
    job: int | None = None
    array: int | None = None
    at: datetime | None = None
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """How many members are in one state. ``key`` is the list's filter, ``x`` and ``width`` are percents of a bar."""

    key: str
    word: str
    tone: str
    count: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class ArrayPage:
    """An array with how many of its members are in each state."""

    id: int
    name: str
    owner: str
    size: int
    limit: int | None
    made: datetime
    counts: tuple[Standing, ...]
    left: int
    can_cancel: bool


def lines(job: Job) -> tuple[Term, ...]:
    """Return everything about a job that bears on when it starts, or on what starts after it."""
    found = [_tie(d.when, d.on_id, d.on.state, d.on.outcome, d.named) for d in _ties(job)]
    if job.not_before is not None:
        found.append(Term("not before", at=job.not_before))
    if job.array is not None:
        limit = f", at most {job.array.limit} at once" if job.array.limit else ""
        rest = f": {told(job.array)}{limit}"
        found.append(Term(f"index {job.array_index} of {job.array.size} in", array=job.array_id, rest=rest))
    policy = retries.from_json(wording.mapping(job.retry_policy))
    if policy is not None:
        number = f"; this is try {job.retry_number}" if job.retry_number else ""
        on = " or ".join(o.value.replace("_", " ") for o in policy.on)
        wait = f"after {wording.span(policy.wait_s)}, then twice as long each time" if policy.wait_s else "at once"
        times = "once" if policy.times == 1 else f"up to {policy.times} times"
        found.append(Term(f"run again {times} if it ends as {on}: {wait}{number}"))
    behind = job.dependents.filter(job__state=State.QUEUED).order_by("job_id").values_list("job_id", flat=True)
    found += [Term("waited for by", job=pk) for pk in dict.fromkeys(behind[:SHOWN])]
    return tuple(found)


def lineage(job: Job, shown: int) -> tuple[tuple[str, int], ...]:
    """Return (word, job) of what a job repeats and of its newest repetitions, made by a person or by Tidegate."""
    before = [("tries again" if job.retry_number else "repeats", job.retry_of_id)] if job.retry_of_id else []
    newest = sorted(job.retries.order_by("-pk").values_list("pk", "retry_number")[:shown])
    return (*before, *(("tried again as" if number else "repeated as", pk) for pk, number in newest))


def as_json(job: Job) -> dict[str, Any]:
    """Return the same for the API."""
    array = job.array
    return {
        "after": [
            {"job": d.named, "when": d.when, "counts": d.on_id, "state": d.on.state, "outcome": d.on.outcome or None}
            for d in _ties(job)
        ],
        "not_before": job.not_before,
        "array": None
        if array is None
        else {"id": array.pk, "index": job.array_index, "size": array.size, "limit": array.limit},
        "retry": wording.mapping(job.retry_policy) or None,
        "retry_number": job.retry_number,
        "retried_as": job.retries.filter(retry_number__gt=0).values_list("pk", flat=True).first(),
        "held_by": job.held_by or None,
        "held_why": job.held_why,
    }


def array_page(user: AbstractBaseUser, array_id: int) -> ArrayPage | None:
    """Return an array as this user may see it, None where there is none."""
    array = JobArray.objects.select_related("user").filter(pk=array_id).first()
    if array is None:
        return None
    found = counts(array)
    left = sum(n for word, n in found.items() if word in _STATES)
    own = array.user_id == user.pk and access.at_least(user, Role.SUBMITTER)
    return ArrayPage(
        id=array.pk,
        name=array.name,
        owner=array.user.get_username(),
        size=array.size,
        limit=array.limit,
        made=array.made_at,
        counts=_standings(found),
        left=left,
        can_cancel=bool(left) and (own or access.at_least(user, Role.OPERATOR)),
    )


def _standings(found: Mapping[str, int]) -> tuple[Standing, ...]:
    """Return the states that members are in, what is done first, as stretches of one bar."""
    words = {**wording.OUTCOMES, "running": "running", "admitted": "starting", "queued": "waiting"}
    tones = {"running": "run", "admitted": "run", "queued": "wait"}
    whole = sum(found.values())
    made: list[Standing] = []
    for key, word in words.items():
        if count := found.get(key):
            x = made[-1].x + made[-1].width if made else 0.0
            tone = tones.get(key) or wording.outcome_tone(key)
            made.append(Standing(key, word, tone, count, x, 100.0 * count / whole))
    return tuple(made)


def counts(array: JobArray) -> Mapping[str, int]:
    """Return how many jobs of an array are in each state, those that ended by their outcome."""
    rows = Job.objects.filter(array=array).values_list("state", "outcome").annotate(n=Count("pk")).order_by()
    return {outcome or state: n for state, outcome, n in rows}


def told(array: JobArray) -> str:
    """Return the counts as a sentence's part: "3 waiting, 2 running, 1 failed"."""
    words = {**_STATES, **wording.OUTCOMES}
    found = counts(array)
    return ", ".join(f"{found[key]:,} {words[key]}" for key in words if found.get(key))


def _ties(job: Job) -> Any:
    return job.dependencies.select_related("on").only("when", "named", "on__state", "on__outcome", "job").order_by("pk")


def _tie(when: str, on: int, state: str, outcome: str, named: int) -> Term:
    tie = Tie(on, After(when), State(state), Outcome(outcome) if outcome else None)
    now = wording.OUTCOMES.get(outcome, outcome) if outcome else _STATES.get(state, state)
    last = f", the last try of #{named}" if named != on else ""
    return Term("after", job=on, rest=f" to {tie.to} ({now}{last}{', as asked' if tie.met else ''})")
