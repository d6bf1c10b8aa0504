"""One act on many jobs: each is done or refused by itself, and the answer says which was which."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db import OperationalError
from django.utils import timezone

from placement.domain.errors import NotFound, NotYours, Refused
from placement.domain.jobs import Outcome, State
from placement.models import Job, JobArray, Role
from placement.services import audit, cycle_row, jobs, members, priorities

MOST = 500  # names in one request
_TOLD = 4  # refusals that the sentence names one by one
DONE = {"cancel": "cancelled", "retry": "submitted again", "hold": "held", "release": "released"}
"""What a job is after each act, by the act's name; of a priority its figure is told."""
VERBS = (*DONE, "priority")
Act = Callable[[int], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one name: "12" for a job, "a3" for what waits of array 3. ``count`` jobs are now ``word``."""

    name: str
    count: int
    sentence: str
    word: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What became of all of them."""

    results: tuple[Result, ...]

    @property
    def count(self) -> int:
        """Return how many jobs were changed."""
        return sum(result.count for result in self.results)

    @property
    def sentence(self) -> str:
        """Return "2 cancelled, 1 being stopped; #12 had already ended: failed; #7 is bob's."."""
        done: Counter[str] = Counter()
        for result in self.results:
            done[result.word] += result.count
        counted = ", ".join(f"{count} {word}" for word, count in done.items() if count)
        refused = [r.sentence.partition(";")[0].rstrip(".") for r in self.results if not r.count]
        parts = [counted or "Nothing was changed", *refused[:_TOLD]]
        if len(refused) > _TOLD:
            parts.append(f"{len(refused) - _TOLD} more were refused as well")
        return f"{'; '.join(parts)}."


def apply(
    user: User,
    verb: str,
    names: Iterable[str],
    *,
    priority: int | None = None,
    why: str = "",
    form_key: str | None = None,
) -> Report:
    """Do one act to each of the named jobs, in their order, each once; raise Refused where none can be meant.

    The same ``form_key`` again runs none of them a second time.
    """
    wanted = list(dict.fromkeys(names))
    if verb not in VERBS:
        raise Refused(f"There is no act {verb[:20]!r}; known are {', '.join(VERBS)}.")
    if not wanted:
        raise Refused("No job is selected. Tick the jobs that are meant.")
    if len(wanted) > MOST:
        raise Refused(f"{len(wanted)} are selected; at most {MOST} are changed at once.")
    if verb == "priority":
        if priority is None:
            raise Refused("Say which priority: a whole number; 0 is usual, higher goes first.")
        priorities.check(user, priority)
    act = _acts(user, priority or 0, why, form_key)[verb]
    return Report(tuple(_one(user, verb, name, act, priority or 0, why) for name in wanted))


def _acts(user: User, priority: int, why: str, form_key: str | None) -> dict[str, Act]:
    """Return the acts on one job; each says what the job is now ("": as it was) and the sentence about it."""

    def cancel(job: int) -> tuple[str, str]:
        said = jobs.cancel(user, job)
        return ("" if "already" in said else "being stopped" if "being stopped" in said else "cancelled"), said

    def retry(job: int) -> tuple[str, str]:
        key = hashlib.sha256(f"{form_key} {job}".encode("utf-8", "replace")).hexdigest() if form_key else None
        return DONE["retry"], f"#{job} is submitted again as #{jobs.retry(user, job, form_key=key).pk}."

    def hold(job: int) -> tuple[str, str]:
        jobs.hold(user, job, why)
        return DONE["hold"], f"#{job} is held."

    return {
        "cancel": cancel,
        "retry": retry,
        "hold": hold,
        "release": lambda job: (DONE["release"], jobs.release(user, job)),
        "priority": lambda job: (_moved(priority), priorities.change(user, job, priority)),
    }


def _moved(priority: int) -> str:
    return f"given priority {priority}"


def _one(user: User, verb: str, name: str, act: Act, priority: int, why: str) -> Result:
    number = name.removeprefix("a")
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        return Result(name, 0, f"{name[:20]!r} is no job")
    try:
        if name.startswith("a"):
            return _array(user, verb, int(number), priority, why)
        word, said = act(int(number))
        return Result(name, int(bool(word)), said, word)
    except Refused as error:
        return Result(name, 0, error.sentence)
    except OperationalError:
        what = f"{'array ' if name.startswith('a') else '#'}{number}"
        return Result(name, 0, f"{what} was not reached, the database is busy: try it again")


def _array(user: User, verb: str, array_id: int, priority: int, why: str) -> Result:
    """Do the act to all members that wait, in one statement: an array has up to ten thousand."""
    array = JobArray.objects.select_related("user").filter(pk=array_id).first()
    if array is None:
        raise NotFound(f"There is no array {array_id}.")
    if array.user_id != user.pk and members.role_of(user) not in (Role.OPERATOR, Role.ADMIN):
        raise NotYours(f"Array {array.pk} is {array.user.get_username()}'s; only they and operators may do that.")
    if verb == "retry":
        raise Refused(f"Array {array.pk}: what waits cannot be run again yet; select members that ended.")
    who, now = user.get_username(), timezone.now()
    changes: dict[str, dict[str, object]] = {
        "cancel": {
            "state": State.FINISHED, "outcome": Outcome.CANCELLED, "ended_at": now,
            "sentence": f"Cancelled by {who} while it waited.",
            "stop_reason": "cancel", "stop_by": who, "stop_requested_at": now,
        },
        "hold": {"held_by": who, "held_at": now, "held_until": None, "held_why": why[:200]},
        "release": {"held_by": "", "held_at": None, "held_until": None, "held_why": ""},
        "priority": {"priority": priority},
    }  # fmt: skip
    with cycle_row.changing():
        count = Job.objects.filter(array=array, state=State.QUEUED).update(**changes[verb])
    if count and array.user_id != user.pk:
        audit.record(user, f"{verb} array", f"array {array.pk} of {array.user.get_username()}", jobs=count)
    word = DONE.get(verb) or _moved(priority)
    return Result(f"a{array.pk}", count, f"Array {array.pk}: {count} that waited {word}.", word)
