"""Ties between jobs: made at submit, moved to a further try, ended where they can never be met."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from placement import conditions
from placement.domain.errors import Refused
from placement.domain.jobs import Outcome, State
from placement.domain.world.conditions import After, Tie, ended, never_met
from placement.models import Dependency, Job
from placement.services import notices

log = logging.getLogger(__name__)
_DEEPEST = 1000  # ends of ends that one cycle follows


@dataclass(frozen=True, slots=True)
class Named:
    """A job that a submission named, and the one that counts: its last try."""

    named: int
    on: Job
    when: After

    @property
    def tie(self) -> Tie:
        """Return it as the gate sees it."""
        return Tie(self.on.pk, self.when, State(self.on.state), Outcome(self.on.outcome) if self.on.outcome else None)


def resolved(after: Iterable[tuple[int, str]]) -> list[Named]:
    """Return what the named jobs stand for now. Raise Refused where one is unknown, or can end so no more."""
    pairs = list(dict.fromkeys(after))
    if not pairs:
        return []
    jobs = Job.objects.only("state", "outcome").in_bulk([job for job, _ in pairs])
    found: list[Named] = []
    for job, when in pairs:
        if job not in jobs:
            _refuse(f"There is no job #{job} to wait for.")
        one = Named(job, _last_try(jobs[job]), After(when))
        if one.tie.never:
            to, how = one.tie.to, ended(one.tie.outcome)
            _refuse(f"#{job} is to {to}, and it {how} already; run it again first, and name the new job.")
        if (one.on.pk, one.when) not in {(other.on.pk, other.when) for other in found}:
            found.append(one)
    return found


def tie(job: Job, named: Sequence[Named]) -> None:
    """Let a job, or all members of its new array, wait for the named ones. The caller holds the cycle row."""
    if not named:
        return
    jobs = [job.pk]
    if job.array_id and not job.retry_of_id:
        jobs = list(Job.objects.filter(array_id=job.array_id).values_list("pk", flat=True))
    ties = (Dependency(job_id=pk, on=n.on, named=n.named, when=n.when.value) for pk in jobs for n in named)
    Dependency.objects.bulk_create(ties, batch_size=1000)
    Job.objects.filter(pk=job.pk).update(tied=True)
    if len(jobs) > 1:
        Job.objects.filter(array_id=job.array_id).update(tied=True)


def follow(old: Job, new: Job) -> None:
    """Let whoever waits for a job wait for its further try. The caller holds the cycle row."""
    Dependency.objects.filter(on=old, job__state=State.QUEUED).update(on=new)


def again(old: Job) -> tuple[tuple[int, str], ...]:
    """Return what a repetition of a job waits for: the newest repetitions of those that it waited for."""
    return tuple((_newest(d.on_id), d.when) for d in old.dependencies.order_by("on_id"))


def end_never_met() -> int:
    """Cancel queued jobs whose ties can never be met, and what waits for those; return how many. In the cycle only."""
    count = 0
    for _ in range(_DEEPEST):
        broken = [(job, ties) for job, ties in conditions.ties().items() if any(t.never for t in ties)]
        if not broken:
            break
        count += sum(_end(job, ties) for job, ties in broken)
    return count


def _end(job: int, ties: tuple[Tie, ...]) -> int:
    told = never_met(job, ties)
    never: list[dict[str, Any]] = [
        {"job": f"#{t.on}", "was to": t.to, "outcome": str(t.outcome)} for t in ties if t.never
    ]
    now = timezone.now()
    log.info("%s", told, extra={"action": "never_met"})
    count = Job.objects.filter(pk=job, state=State.QUEUED).update(
        state=State.FINISHED,
        outcome=Outcome.CANCELLED,
        sentence=told[:1000],
        evidence={"depends": never[0]},
        stop_reason="depends",
        stop_by="tidegate",
        stop_requested_at=now,
        ended_at=now,
    )
    notices.ended([job] if count else [])
    return count


def _last_try(job: Job) -> Job:
    while (after := Job.objects.only("state", "outcome").filter(retry_of=job, retry_number__gt=0).first()) is not None:
        job = after
    return job


def _newest(job_id: int) -> int:
    while (
        after := Job.objects.filter(retry_of=job_id).order_by("-pk").values_list("pk", flat=True).first()
    ) is not None:
        job_id = after
    return job_id


def _refuse(sentence: str) -> None:
    raise Refused(f"Nothing was submitted: {sentence}", {"after": sentence})
